"""A grammar that says each sentence in English and in French, and which word comes from which.

A phrase holds both languages. Its links are the gold alignment: for each French word, the English
words that it translates.
"""

import zlib
from dataclasses import dataclass

from model.training.lexicon import ADJECTIVES, NOUNS, VERBS, Adjective, Noun, begins_with_vowel
from model.training.recipe import Random

DETERMINERS = {  # English: French masculine, feminine, before a vowel (None: by gender), plural
    "the": ("le", "la", "l'", "les"),
    "a": ("un", "une", None, None),
    "my": ("mon", "ma", "mon", "mes"),
    "your": ("ton", "ta", "ton", "tes"),
    "his": ("son", "sa", "son", "ses"),
    "our": ("notre", "notre", "notre", "nos"),
    "this": ("ce", "cette", None, None),
    "these": (None, None, None, "ces"),
    "two": (None, None, None, "deux"),
    "three": (None, None, None, "trois"),
}
PRONOUNS = {"he": ("il", False), "she": ("elle", True), "they": ("ils", False)}
PREPOSITIONS = {"in": "dans", "on": "sur", "under": "sous", "behind": "derrière", "with": "avec"}
_AT = {
    "in": ("place",), "on": ("thing",), "under": ("thing",), "behind": ("place", "thing"),
    "with": ("person", "animal"),
}  # fmt: skip
_ALIVE = frozenset({"person", "animal"})


@dataclass(frozen=True)
class Phrase:
    """The same words in both languages. `links[f]`: the English words that French word f says."""

    english: tuple[str, ...]
    french: tuple[str, ...]
    links: tuple[tuple[int, ...], ...]
    pairs: tuple[tuple[str, str], ...] = ()  # (adjective, noun), English
    swapped: tuple[int, ...] = ()  # French words whose noun and adjective changed places

    def __add__(self, other: "Phrase") -> "Phrase":
        shift, french_shift = len(self.english), len(self.french)
        return Phrase(
            self.english + other.english,
            self.french + other.french,
            self.links + tuple(tuple(at + shift for at in link) for link in other.links),
            self.pairs + other.pairs,
            self.swapped + tuple(at + french_shift for at in other.swapped),
        )


@dataclass(frozen=True)
class Subject:
    """A phrase with what its verb and its adjective must agree with."""

    phrase: Phrase
    feminine: bool
    plural: bool
    kind: str
    noun: str  # English


def word(english: str, french: str) -> Phrase:
    """One word that is one word in the other language."""
    return Phrase((english,), (french,), ((0,),))


def is_held_out_pair(adjective: str, noun: str) -> bool:
    """One adjective–noun pair in ten is never learned, whatever sentence it stands in."""
    return zlib.crc32(f"{adjective} {noun}".encode()) % 10 == 0


def is_held_out_sentence(phrase: Phrase) -> bool:
    """One English sentence in ten is never learned."""
    return zlib.crc32(" ".join(phrase.english).encode()) % 10 == 3


def sentence(random: Random) -> Phrase:
    """A noun phrase alone (one in eight), or a sentence; with a full stop in two of three."""
    phrase = noun_phrase(random).phrase if random.random() < 1 / 8 else _clause(random)
    return phrase + word(".", ".") if random.random() < 2 / 3 else phrase


def noun_phrase(random: Random, kinds: frozenset[str] | None = None) -> Subject:
    """A determiner, at most two adjectives and a noun of one of the kinds."""
    fitting = [noun for noun in NOUNS if kinds is None or noun.kinds & kinds]
    noun = fitting[random.integers(len(fitting))]
    plural = random.random() < 0.25 and "drink" not in noun.kinds
    column = 3 if plural else 0
    determiners = [english for english, french in DETERMINERS.items() if french[column]]
    common = random.random() < 0.4
    determiner = "the" if common else determiners[random.integers(len(determiners))]
    before, after = _adjectives(random, noun)
    phrase = described(determiner, noun, plural=plural, before=before, after=after)
    return Subject(phrase, noun.feminine, plural, next(iter(noun.kinds)), noun.english)


def _adjectives(random: Random, noun: Noun) -> tuple[Adjective | None, Adjective | None]:
    """An adjective that French puts before the noun, one that it puts after; often only one."""
    amount = random.random()
    before = _adjective(random, noun, before=True) if amount < 0.3 else None
    after = _adjective(random, noun, before=False) if 0.25 < amount < 0.65 else None
    return before, after


def _adjective(random: Random, noun: Noun, *, before: bool | None = None) -> Adjective:
    """Mostly one that suits the noun, now and then any."""
    anything = random.random() < 0.2
    fitting = [
        adjective
        for adjective in ADJECTIVES
        if (before is None or adjective.before == before)
        and (anything or adjective.of & noun.kinds)
    ]
    return fitting[random.integers(len(fitting))]


def described(
    determiner: str,
    noun: Noun,
    *,
    plural: bool,
    before: Adjective | None,
    after: Adjective | None,
) -> Phrase:
    """English: determiner, adjectives, noun. French: determiner, one adjective, noun, the other."""
    adjectives = [adjective for adjective in (before, after) if adjective]
    noun_at = 1 + len(adjectives)
    english = [determiner, *(a.english for a in adjectives), _english_noun(noun, plural)]
    if determiner == "a" and english[1][0] in "aeiou":
        english[0] = "an"
    french = [noun.french_plural if plural else noun.french]
    links = [noun_at]
    if before:
        french.insert(0, _before(before, noun, plural=plural))
        links.insert(0, 1)
    if after:
        french.append(after.french(feminine=noun.feminine, plural=plural))
        links.append(noun_at - 1)
    article = _french_determiner(determiner, french[0], feminine=noun.feminine, plural=plural)
    swapped = (len(french) - 1, len(french)) if after else ()
    return Phrase(
        tuple(english),
        (article, *french),
        ((0,), *((at,) for at in links)),
        tuple((adjective.english, noun.english) for adjective in adjectives),
        swapped,
    )


def _english_noun(noun: Noun, plural: bool) -> str:
    return noun.english_plural if plural else noun.english


def _before(adjective: Adjective, noun: Noun, *, plural: bool) -> str:
    if not plural and not noun.feminine and begins_with_vowel(noun.french):
        return adjective.masculine_vowel
    return adjective.french(feminine=noun.feminine, plural=plural)


def _french_determiner(english: str, following: str, *, feminine: bool, plural: bool) -> str:
    masculine, feminine_form, elided, many = DETERMINERS[english]
    if plural:
        return many or ""
    if begins_with_vowel(following):
        if english == "this":
            return "cette" if feminine else "cet"
        if elided:
            return elided
    return (feminine_form if feminine else masculine) or ""


def _clause(random: Random) -> Phrase:
    """Subject and verb, with an object, a place or an adjective."""
    choice = random.random()
    if choice < 0.3:
        return _is(random, _subject(random))
    subject = _subject(random, alive=True)
    verbs = [verb for verb in VERBS if subject.kind in verb.by]
    verb = verbs[random.integers(len(verbs))]
    negated = random.random() < 0.2
    french = verb.french_plural if subject.plural else verb.french
    if negated:
        phrase = subject.phrase + negation(verb.english_plural, french, plural=subject.plural)
    else:
        english = verb.english_plural if subject.plural else verb.english
        phrase = subject.phrase + word(english, french)
    if verb.of:
        found = noun_phrase(random, verb.of).phrase
        return phrase + (without_article(found) if negated else found)
    return phrase + _place(random) if random.random() < 0.4 else phrase


def negation(bare: str, french: str, *, plural: bool) -> Phrase:
    """ "does not sleep", "ne dort pas"."""
    helper = "do" if plural else "does"
    ne = "n'" if begins_with_vowel(french) else "ne"
    return Phrase((helper, "not", bare), (ne, french, "pas"), ((1,), (2,), (1,)))


def without_article(found: Phrase) -> Phrase:
    """French says "pas de pomme" for "not an apple"."""
    if found.french[0] not in ("un", "une"):
        return found
    de = "d'" if begins_with_vowel(found.french[1]) else "de"
    return Phrase(found.english, (de, *found.french[1:]), found.links, found.pairs, found.swapped)


def _subject(random: Random, *, alive: bool = False) -> Subject:
    """A noun phrase, a pronoun, or two noun phrases joined by "and"."""
    choice = random.random()
    if choice < 0.12:
        english = tuple(PRONOUNS)[random.integers(len(PRONOUNS))]
        french, feminine = PRONOUNS[english]
        return Subject(word(english, french), feminine, english == "they", "person", "")
    first = noun_phrase(random, _ALIVE if alive else None)
    if choice < 0.2:
        second = noun_phrase(random, frozenset({first.kind}))
        phrase = first.phrase + word("and", "et") + second.phrase
        return Subject(phrase, first.feminine and second.feminine, True, first.kind, "")
    return first


def _is(random: Random, subject: Subject) -> Phrase:
    """ "is not black", "n'est pas noir"; or where something is."""
    verb = being(plural=subject.plural, negated=random.random() < 0.3)
    if random.random() < 0.25:
        return subject.phrase + verb + _place(random)
    kind = frozenset({subject.kind})
    noun = next(noun for noun in NOUNS if noun.english == subject.noun or noun.kinds == kind)
    adjective = _adjective(random, noun)
    return subject.phrase + verb + quality(adjective, subject, very=random.random() < 0.2)


def being(*, plural: bool, negated: bool) -> Phrase:
    """ "is", "est"; or "is not", "n'est pas"."""
    english, french = ("are", "sont") if plural else ("is", "est")
    if not negated:
        return word(english, french)
    ne = "n'" if begins_with_vowel(french) else "ne"
    return Phrase((english, "not"), (ne, french, "pas"), ((1,), (0,), (1,)))


def quality(adjective: Adjective, subject: Subject, *, very: bool) -> Phrase:
    """An adjective after "is", which agrees with the subject; or the same with "very"."""
    form = adjective.french(feminine=subject.feminine, plural=subject.plural)
    pairs = ((adjective.english, subject.noun),) if subject.noun else ()
    said = Phrase((adjective.english,), (form,), ((0,),), pairs)
    return word("very", "très") + said if very else said


def _place(random: Random) -> Phrase:
    english = tuple(PREPOSITIONS)[random.integers(len(PREPOSITIONS))]
    kinds = frozenset(_AT[english])
    return word(english, PREPOSITIONS[english]) + noun_phrase(random, kinds).phrase


def words() -> tuple[str, ...]:
    """Every word of both languages, sorted."""
    found = {".", "an", "and", "et", "do", "does", "not", "ne", "n'", "pas", "de", "d'", "cet"}
    found |= {"is", "are", "est", "sont", "very", "très"}
    found |= {form for english, forms in DETERMINERS.items() for form in (english, *forms) if form}
    found |= {form for english, (french, _) in PRONOUNS.items() for form in (english, french)}
    found |= {form for pair in PREPOSITIONS.items() for form in pair}
    for noun in NOUNS:
        found |= {noun.english, noun.english_plural, noun.french, noun.french_plural}
    for adjective in ADJECTIVES:
        found |= {adjective.english, adjective.masculine_vowel}
        found |= {
            adjective.french(feminine=feminine, plural=plural)
            for feminine in (True, False)
            for plural in (True, False)
        }
    for verb in VERBS:
        found |= {verb.english, verb.english_plural, verb.french, verb.french_plural}
    return tuple(sorted(found))
