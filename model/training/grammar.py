"""A grammar that draws and reads sentences in English, with their French."""

import tomllib
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from model.training.recipe import Random

VOWELS = "aeiouyàâéèêëîïôùûœ"


@dataclass(frozen=True)
class Noun:
    """`kinds`: "person", "animal", "food", "drink", "text", …"""

    english: str
    english_plural: str
    french: str
    french_plural: str
    feminine: bool
    kinds: frozenset[str]


@dataclass(frozen=True)
class Adjective:
    """French forms by gender and number. `before`: it stands before the noun."""

    english: str
    masculine: str
    feminine: str
    masculine_plural: str
    feminine_plural: str
    before: bool
    of: frozenset[str]  # kinds of nouns that it usually describes
    masculine_vowel: str  # before a masculine word that begins with a vowel: "vieil homme"

    def french(self, *, feminine: bool, plural: bool) -> str:
        if plural:
            return self.feminine_plural if feminine else self.masculine_plural
        return self.feminine if feminine else self.masculine


@dataclass(frozen=True)
class Verb:
    """Third person, present. `by`: kinds of subjects. `of`: kinds of objects, empty: none."""

    english: str
    english_plural: str  # also the bare form: "does not sleep"
    french: str
    french_plural: str
    by: frozenset[str]
    of: frozenset[str]


def begins_with_vowel(french: str) -> bool:
    """Whether the word before a French word loses its vowel. Every h here is silent."""
    return french[0] in VOWELS + "h"


_BEFORE_VOWEL = {"vieux": "vieil", "beau": "bel", "nouveau": "nouvel"}


def _plural(french: str) -> str:
    if french[-1] in "sx":
        return french
    return french + ("x" if french.endswith("eau") else "s")


def _both(word: str, plural: str) -> tuple[str, str]:
    """Singular and plural of "one/many", or of "one" with the regular plural."""
    one, _, many = word.partition("/")
    return one, many or plural


def _noun(entry: str, kind: str) -> Noun:
    english, french = entry.split()
    feminine = french.startswith("-")
    french = french.removeprefix("-")
    ending = "es" if english.endswith(("x", "s", "ch")) else "s"
    return Noun(
        *_both(english, english + ending),
        *_both(french, _plural(french)),
        feminine,
        frozenset({kind}),
    )


def _written_adjective(entry: str, *, before: bool) -> Adjective:
    english, french, *kinds = entry.split()
    masculine, feminine = _both(french, french + "e")
    return Adjective(
        english,
        masculine,
        feminine,
        _plural(masculine),
        _plural(feminine),
        before,
        frozenset(kinds),
        _BEFORE_VOWEL.get(masculine, masculine),
    )


def _verb(entry: str) -> Verb:
    words, subjects, *objects = entry.split("|")
    english, english_plural, french, french_plural = words.split()
    by, of = frozenset(subjects.split()), frozenset(" ".join(objects).split())
    return Verb(english, english_plural, french, french_plural, by, of)


_WRITTEN = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
NOUNS = tuple(
    _noun(entry, kind) for kind, lines in _WRITTEN["nouns"].items() for entry in lines.splitlines()
)
ADJECTIVES = tuple(
    _written_adjective(entry, before=place == "before")
    for place, lines in _WRITTEN["adjectives"].items()
    for entry in lines.splitlines()
)
VERBS = tuple(map(_verb, _WRITTEN["verbs"].splitlines()))
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


@dataclass(frozen=True)
class Phrase:
    """The same words in both languages. `links[f]`: the English words that French word f translates."""

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
class GrammarSubject:
    """A phrase with what its verb and its adjective must agree with."""

    phrase: Phrase
    feminine: bool
    plural: bool
    kind: str
    noun: str  # English


def word(english: str, french: str) -> Phrase:
    """One word that is one word in the other language."""
    return Phrase((english,), (french,), ((0,),))


def pronoun(english: str) -> GrammarSubject:
    """ "she", "elle"."""
    french, feminine = PRONOUNS[english]
    return GrammarSubject(word(english, french), feminine, english == "they", "person", "")


def joined(first: GrammarSubject, second: GrammarSubject) -> GrammarSubject:
    """Two noun phrases with "and" between them."""
    phrase = first.phrase + word("and", "et") + second.phrase
    return GrammarSubject(phrase, first.feminine and second.feminine, True, first.kind, "")


def described(
    determiner: str,
    noun: Noun,
    *,
    plural: bool,
    before: Adjective | None,
    after: Adjective | None,
) -> GrammarSubject:
    """English: determiner, adjectives, noun. French: determiner, one adjective, noun, the other.

    Args:
        determiner: in English; "a" becomes "an" before a vowel.
        before, after: the adjective that French puts before the noun, and the one behind it; None: there is
            none. English has both before the noun, in this order.
    """
    adjectives = [adjective for adjective in (before, after) if adjective]
    noun_at = 1 + len(adjectives)
    named = noun.english_plural if plural else noun.english
    english = [determiner, *(a.english for a in adjectives), named]
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
    phrase = Phrase(
        tuple(english),
        (article, *french),
        ((0,), *((at,) for at in links)),
        tuple((adjective.english, noun.english) for adjective in adjectives),
        swapped,
    )
    return GrammarSubject(phrase, noun.feminine, plural, next(iter(noun.kinds)), noun.english)


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


def doing(verb: Verb, *, plural: bool, negated: bool) -> Phrase:
    """ "sleeps", "dort"; or "does not sleep", "ne dort pas"."""
    french = verb.french_plural if plural else verb.french
    if not negated:
        return word(verb.english_plural if plural else verb.english, french)
    english = ("do" if plural else "does", "not", verb.english_plural)
    return Phrase(english, (_elided("ne", french), french, "pas"), ((1,), (2,), (1,)))


def thing(phrase: Phrase, *, negated: bool) -> Phrase:
    """The object of a verb. French says "pas de pomme" for "not an apple"."""
    if not negated or phrase.french[0] not in ("un", "une"):
        return phrase
    return replace(phrase, french=(_elided("de", phrase.french[1]), *phrase.french[1:]))


def being(*, plural: bool, negated: bool) -> Phrase:
    """ "is", "est"; or "is not", "n'est pas"."""
    english, french = ("are", "sont") if plural else ("is", "est")
    if not negated:
        return word(english, french)
    return Phrase((english, "not"), (_elided("ne", french), french, "pas"), ((1,), (0,), (1,)))


def _elided(word: str, following: str) -> str:
    return f"{word[0]}'" if begins_with_vowel(following) else word


def quality(adjective: Adjective, subject: GrammarSubject, *, very: bool) -> Phrase:
    """An adjective after "is", which agrees with the subject; or the same with "very"."""
    form = adjective.french(feminine=subject.feminine, plural=subject.plural)
    pairs = ((adjective.english, subject.noun),) if subject.noun else ()
    phrase = Phrase((adjective.english,), (form,), ((0,),), pairs)
    return word("very", "très") + phrase if very else phrase


T = TypeVar("T")

_AT = {
    "in": ("place",), "on": ("thing",), "under": ("thing",), "behind": ("place", "thing"),
    "with": ("person", "animal"),
}  # fmt: skip
_ALIVE = frozenset({"person", "animal"})


def sentence(random: Random) -> Phrase:
    """A noun phrase alone (one in eight), or a sentence; with a full stop in two of three."""
    phrase = noun_phrase(random).phrase if random.random() < 1 / 8 else _clause(random)
    return phrase + word(".", ".") if random.random() < 2 / 3 else phrase


def noun_phrase(random: Random, kinds: frozenset[str] | None = None) -> GrammarSubject:
    """A determiner, at most two adjectives and a noun of one of the kinds."""
    noun = _one(random, [noun for noun in NOUNS if kinds is None or noun.kinds & kinds])
    plural = random.random() < 0.25 and "drink" not in noun.kinds
    column = 3 if plural else 0
    determiners = [english for english, french in DETERMINERS.items() if french[column]]
    determiner = "the" if random.random() < 0.4 else _one(random, determiners)
    # An adjective that French puts before the noun and one that it puts after it; often one or none.
    amount = random.random()
    before = _adjective(random, noun, before=True) if amount < 0.3 else None
    after = _adjective(random, noun, before=False) if 0.25 < amount < 0.65 else None
    return described(determiner, noun, plural=plural, before=before, after=after)


def _adjective(random: Random, noun: Noun, *, before: bool | None = None) -> Adjective:
    """One that suits the noun, or in one of five cases any."""
    anything = random.random() < 0.2
    return _one(
        random,
        [
            adjective
            for adjective in ADJECTIVES
            if (before is None or adjective.before == before)
            and (anything or adjective.of & noun.kinds)
        ],
    )


def _clause(random: Random) -> Phrase:
    """Subject and verb, with an object, a place or an adjective."""
    choice = random.random()
    if choice < 0.3:
        return _is(random, _subject(random))
    subject = _subject(random, alive=True)
    verb = _one(random, [verb for verb in VERBS if subject.kind in verb.by])
    negated = random.random() < 0.2
    phrase = subject.phrase + doing(verb, plural=subject.plural, negated=negated)
    if verb.of:
        return phrase + thing(noun_phrase(random, verb.of).phrase, negated=negated)
    return phrase + _place(random) if random.random() < 0.4 else phrase


def _subject(random: Random, *, alive: bool = False) -> GrammarSubject:
    """A noun phrase, a pronoun, or two noun phrases joined by "and"."""
    choice = random.random()
    if choice < 0.12:
        return pronoun(_one(random, [*PRONOUNS]))
    first = noun_phrase(random, _ALIVE if alive else None)
    if choice < 0.2:
        return joined(first, noun_phrase(random, frozenset({first.kind})))
    return first


def _is(random: Random, subject: GrammarSubject) -> Phrase:
    """ "is not black", "n'est pas noir"; or where something is."""
    verb = being(plural=subject.plural, negated=random.random() < 0.3)
    if random.random() < 0.25:
        return subject.phrase + verb + _place(random)
    kind = frozenset({subject.kind})
    noun = next(noun for noun in NOUNS if noun.english == subject.noun or noun.kinds == kind)
    adjective = _adjective(random, noun)
    return subject.phrase + verb + quality(adjective, subject, very=random.random() < 0.2)


def _place(random: Random) -> Phrase:
    english, french = _one(random, [*PREPOSITIONS.items()])
    return word(english, french) + noun_phrase(random, frozenset(_AT[english])).phrase


def _one(random: Random, fitting: list[T]) -> T:
    return fitting[random.integers(len(fitting))]


_ARTICLES = {**{english: english for english in DETERMINERS}, "an": "a"}
_NOUNS = {
    **{noun.english: (noun, False) for noun in NOUNS},
    **{noun.english_plural: (noun, True) for noun in NOUNS},
}
_ADJECTIVES = {adjective.english: adjective for adjective in ADJECTIVES}
_BEFORE = {english: each for english, each in _ADJECTIVES.items() if each.before}
_AFTER = {english: each for english, each in _ADJECTIVES.items() if not each.before}
_VERBS = {
    **{verb.english: (verb, False) for verb in VERBS},
    **{verb.english_plural: (verb, True) for verb in VERBS},
}
_BEING = {"is": False, "are": True}
_HELPERS = {"does": False, "do": True}
_NOTHING = Phrase((), (), ())


class _NotOfTheGrammarError(Exception):
    """The words do not follow the grammar."""


def parsed(english: Sequence[str]) -> Phrase | None:
    """The phrase of the grammar with these English words; None if there is none.

    Meaning is not checked: "the house reads" is parsed. After a verb an object, a place, both or nothing may
    follow, which is a little more than the grammar itself makes.
    """
    reader = _PhraseReader(english)
    try:
        phrase = reader.sentence()
    except _NotOfTheGrammarError:
        return None
    return phrase if phrase.english == tuple(english) else None


class _PhraseReader:
    """Reads words from left to right; `_left` are those still to be read."""

    def __init__(self, words: Iterable[str]) -> None:
        self._left = list(words)

    def sentence(self) -> Phrase:
        subject = self._subject()
        phrase = subject.phrase
        if self._left and not self._next({"."}):
            phrase += self._predicate(subject)
        if self._skipped("."):
            phrase += word(".", ".")
        self._holds(not self._left)
        return phrase

    def _subject(self) -> GrammarSubject:
        if self._next(PRONOUNS):
            return pronoun(self._left.pop(0))
        first = self._described()
        return joined(first, self._described()) if self._skipped("and") else first

    def _described(self) -> GrammarSubject:
        """A determiner, adjectives and a noun."""
        determiner = self._taken(_ARTICLES)
        before = self._taken(_BEFORE) if self._next(_BEFORE) else None
        after = self._taken(_AFTER) if self._next(_AFTER) else None
        noun, plural = self._taken(_NOUNS)
        self._holds(DETERMINERS[determiner][3 if plural else 0] is not None)
        return described(determiner, noun, plural=plural, before=before, after=after)

    def _predicate(self, subject: GrammarSubject) -> Phrase:
        if self._next(_BEING):
            return self._being(subject)
        negated = self._next(_HELPERS)
        if negated:
            self._holds(self._taken(_HELPERS) == subject.plural)
            self._holds(self._skipped("not"))
        verb, plural = self._taken(_VERBS)
        self._holds(plural == (True if negated else subject.plural))
        action = doing(verb, plural=subject.plural, negated=negated)
        return action + self._object(negated=negated) + self._place()

    def _being(self, subject: GrammarSubject) -> Phrase:
        self._holds(self._taken(_BEING) == subject.plural)
        verb = being(plural=subject.plural, negated=self._skipped("not"))
        if self._next(PREPOSITIONS):
            return verb + self._place()
        very = self._skipped("very")
        return verb + quality(self._taken(_ADJECTIVES), subject, very=very)

    def _object(self, *, negated: bool) -> Phrase:
        if not self._next(_ARTICLES):
            return _NOTHING
        return thing(self._described().phrase, negated=negated)

    def _place(self) -> Phrase:
        if not self._next(PREPOSITIONS):
            return _NOTHING
        english = self._left[0]
        return word(english, self._taken(PREPOSITIONS)) + self._described().phrase

    def _next(self, known: Container[str]) -> bool:
        """Whether one of these words comes next."""
        return bool(self._left) and self._left[0] in known

    def _taken(self, known: Mapping[str, T]) -> T:
        """Reads the next word; returns what it stands for."""
        self._holds(self._next(known))
        return known[self._left.pop(0)]

    def _skipped(self, expected: str) -> bool:
        """Reads the next word if it is this one; returns whether it was."""
        is_next = self._next({expected})
        if is_next:
            self._left.pop(0)
        return is_next

    def _holds(self, law: bool) -> None:
        if not law:
            raise _NotOfTheGrammarError
