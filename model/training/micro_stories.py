"""A grammar of micro-stories: simple English in which names and things are mentioned again.

A story keeps its people (a surname is always said if there is one), its places, and its things with their
adjectives. So a second mention can be predicted from the first one, by copying.
"""

from string import Formatter

from model.training.recipe import Random

WOMEN = (
    "Anna", "Mary", "Sarah", "Alice", "Rose", "Jane", "Kate", "Laura", "Eva", "Susan", "Amy",
    "Lisa", "Maria", "Jessica", "Jennifer", "Rachel", "Elizabeth", "Emily", "Victoria", "Marie",
)  # fmt: skip
MEN = (
    "Tom", "John", "Paul", "Peter", "David", "James", "Mark", "Jack", "Henry", "George", "Sam",
    "Ben", "Max", "Adam", "Simon", "Robert", "Frank", "Daniel", "Luke", "Thomas",
)  # fmt: skip
SURNAMES = (
    "Smith", "Brown", "Wilson", "Taylor", "Clark", "Hall", "Green", "Baker", "Hill", "Moore",
    "White", "Martin", "Cooper", "Ward", "King", "Wood", "Young", "Stone", "Fox", "Miller",
    "Carter", "Parker", "Bell", "Price", "Reed", "Cook", "Ross", "Gray", "Perry", "Lane",
)  # fmt: skip
COLOURS = ("red", "blue", "green", "yellow", "white", "black", "brown", "golden", "silver", "pink")
LOOKS = (
    "small", "big", "new", "old", "round", "soft", "heavy", "tiny", "strange", "beautiful",
    "broken", "warm", "cold", "long", "clean", "dirty", "dark", "bright", "cheap", "quiet",
)  # fmt: skip
THINGS = (
    "ball", "book", "box", "cup", "key", "hat", "coat", "letter", "picture", "toy", "boat", "knife",
    "drum", "bell", "bag", "chair", "table", "ring", "coin", "clock", "lamp", "map", "stone",
    "bread", "cake", "flower", "blanket", "basket", "bottle", "bike", "car", "plate", "stick", "bed",
    "shirt",
)  # fmt: skip
ANIMALS = (
    "cat", "dog", "bird", "horse", "fox", "bear", "lion", "tiger", "rabbit", "mouse", "cow",
    "sheep", "pig", "duck", "frog", "fish", "wolf", "monkey", "chicken", "snake",
)  # fmt: skip
SEATS = ("mat", "bed", "table", "chair", "wall", "roof", "floor", "bench", "box", "grass", "stone")
PLACES = (
    "park", "garden", "school", "house", "forest", "river", "village", "city", "shop", "market",
    "kitchen", "street", "church", "farm", "beach", "library", "station", "castle", "field", "hill",
)  # fmt: skip
ROADS = ("street", "road", "river", "bridge", "field", "garden")
FEELINGS = ("tired", "happy", "sad", "hungry", "angry", "afraid", "cold", "sick", "lonely", "proud")
TIMES = ("day", "morning", "evening", "night", "week", "summer", "winter")

TEMPLATES = (
    "{hero} had a {adjective} {thing}.",
    "{hero} found a {adjective} {thing} in the {place}.",
    "{hero} lost the {adjective} {thing}, and {he} was {feeling}.",
    "{hero} liked {his} {adjective} {thing}.",
    "{hero} put the {adjective} {thing} on the {seat}.",
    "{hero} wanted to buy a {other_adjective} {other_thing}.",
    "{hero} was {feeling} because {he} had lost the {thing}.",
    "{hero} was {feeling}, so {he} went home.",
    "{hero} lived in a {adjective} house near the {place}.",
    "{hero} went to the {place} with {friend}.",
    "{hero} met {friend} in the {place}.",
    "{hero} gave {friend} the {thing}.",
    "{hero} gave the {adjective} {thing} to {friend}.",
    "{friend} gave {hero} a {other_adjective} {other_thing}.",
    "{friend} said that the {thing} was {adjective}.",
    "{friend} was very {feeling}, but {hero} was not.",
    "{friend} asked {hero} about the {adjective} {thing}.",
    "{friend} looked at the {other_adjective} {other_thing} and smiled.",
    "{friend} thanked {hero} for the {other_thing}.",
    "When {hero} and {friend} went to the {place}, {hero} gave a {thing} to {friend}.",
    "When {hero} and {friend} went to the {place}, {friend} gave a {thing} to {hero}.",
    "When {hero} saw the {animal}, {he} was {feeling}.",
    "When {hero} came home, the {thing} was on the {seat}.",
    "One {time}, {hero} went to the {place}.",
    "One {time}, {friend} saw the {animal} near the {place}.",
    "The next {time}, {hero} came back to the {place}.",
    "In the {time}, {hero} liked to read a book.",
    "At the {place}, {friend} saw {hero} again.",
    "Then {hero} opened the {other_adjective} box, and the {thing} was in it.",
    "Then {friend} took the {thing} and went to the {place}.",
    "{He} was very {feeling}.",
    "{He} liked the {adjective} {thing} more than the {other_adjective} {other_thing}.",
    "{He} told {friend} about the {adjective} {thing}.",
    "{He} could not find {his} {adjective} {thing}.",
    "{He} took {his} {thing} and went home with the {animal}.",
    "The {adjective} {thing} was on the {seat}.",
    "The {thing} was {adjective}, and the {other_thing} was {other_adjective}.",
    "The {other_adjective} {other_thing} was for {friend}.",
    "The {thing} did not fit in the {other_thing} because it was too big.",
    "The {animal} sat on the {seat}.",
    "The {animal} sat on the {seat} because it was {feeling}.",
    "The {animal} did not cross the {road} because it was too {feeling}.",
    "The {animal} chased the {prey}, and the {prey} ran to the {place}.",
    "The {animal} saw the {prey}, and the {prey} saw the {animal}.",
    "The {animal_look} {animal} jumped over the {prey_look} {prey}.",
    "The {animal_look} {animal} slept under the {seat}.",
    "The {animal_look} {animal} of {hero} was {feeling}.",
    "The {prey_look} {prey} was not afraid of the {animal_look} {animal}.",
    "There was a {animal_look} {animal} in the {place}.",
    "It was a {weather} {time}, and {hero} was at home.",
    "Where was the {animal}? It was in the {place} with {friend}.",
    "Everybody in the {place} knew {hero} and {friend}.",
)  # fmt: skip
_CASES = {True: ("she", "her"), False: ("he", "his")}
_LONGEST_STORY = 8


def story(random: Random) -> str:
    """One story of three to eight sentences, in any order, about the same people and things."""
    scene = _scene(random)
    count = int(random.integers(3, _LONGEST_STORY + 1))
    chosen = random.choice(len(TEMPLATES), count, replace=False)
    return " ".join(TEMPLATES[template].format(**scene) for template in chosen)


def _scene(random: Random) -> dict[str, str]:
    """The words for all slots of the templates; two of a kind always differ."""
    is_woman = bool(random.integers(2))
    he, his = _CASES[is_woman]
    hero, friend = _people(random, is_woman)
    things, adjectives = _different(random, THINGS, 2), _different(random, COLOURS + LOOKS, 2)
    animals, looks = _different(random, ANIMALS, 2), _different(random, COLOURS + LOOKS, 2)
    single = {
        "place": PLACES, "seat": SEATS, "road": ROADS, "feeling": FEELINGS, "time": TIMES,
        "weather": ("cold", "warm", "dark", "bright", "quiet", "beautiful"),
    }  # fmt: skip
    return {
        "hero": hero, "friend": friend, "he": he, "He": he.title(), "his": his,
        "thing": things[0], "other_thing": things[1],
        "adjective": adjectives[0], "other_adjective": adjectives[1],
        "animal": animals[0], "prey": animals[1], "animal_look": looks[0], "prey_look": looks[1],
        **{slot: _different(random, words, 1)[0] for slot, words in single.items()},
    }  # fmt: skip


def _people(random: Random, is_woman: bool) -> tuple[str, str]:
    """Two people with different first names; each has a surname in three stories of four."""
    first = _different(random, WOMEN if is_woman else MEN, 1)[0]
    everybody = tuple(name for name in WOMEN + MEN if name != first)
    second = _different(random, everybody, 1)[0]
    surnames = _different(random, SURNAMES, 2)
    has_surname = random.random(2) < 0.75
    return (
        f"{first} {surnames[0]}" if has_surname[0] else first,
        f"{second} {surnames[1]}" if has_surname[1] else second,
    )


def _different(random: Random, words: tuple[str, ...], count: int) -> list[str]:
    return [words[place] for place in random.choice(len(words), count, replace=False)]


def vocabulary() -> tuple[str, ...]:
    """Every word that a story can contain, sorted."""
    lists = (
        WOMEN, MEN, SURNAMES, COLOURS, LOOKS, THINGS, ANIMALS, SEATS, PLACES, ROADS, FEELINGS,
        TIMES,
    )  # fmt: skip
    literal = " ".join(
        text for template in TEMPLATES for text, *_ in Formatter().parse(template) if text
    )
    spoken = [word.strip(".,?") for word in literal.split()]
    pronouns = [word for case in _CASES.values() for word in (*case, case[0].title())]
    return tuple(sorted({*spoken, *pronouns, *(word for words in lists for word in words)} - {""}))
