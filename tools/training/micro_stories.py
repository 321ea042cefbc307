"""A grammar of micro-stories: simple English in which names and things are mentioned again.

A story keeps its people (a surname is always said if there is one), its places, and its things with their
adjectives. So a second mention can be predicted from the first one, by copying. Its sentences stand in
micro_stories.toml, its words in that of model/training.
"""

import tomllib
from pathlib import Path
from string import Formatter

from model.training.micro_stories import WORDS
from model.training.recipe import Random

_WRITTEN = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
TEMPLATES: tuple[str, ...] = tuple(_WRITTEN["templates"])
WOMEN, MEN, SURNAMES = WORDS["women"], WORDS["men"], WORDS["surnames"]
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
    scene = {"hero": hero, "friend": friend, "he": he, "He": he.title(), "his": his}
    for slots, kind in _WRITTEN["slots"].items():
        names = slots.split()
        scene |= zip(names, _different(random, WORDS[kind], len(names)), strict=True)
    return scene


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
    literal = " ".join(
        text for template in TEMPLATES for text, *_ in Formatter().parse(template) if text
    )
    spoken = [word.strip(".,?") for word in literal.split()]
    pronouns = [word for case in _CASES.values() for word in (*case, case[0].title())]
    listed = [word for words in WORDS.values() for word in words]
    return tuple(sorted({*spoken, *pronouns, *listed} - {""}))
