"""Phrases in English and French, with agreement and with word links.

The links of a phrase are the reference alignment: for each French word, the English words that it translates.
"""

from dataclasses import dataclass, replace

from model.training.lexicon import (
    DETERMINERS,
    PRONOUNS,
    Adjective,
    Noun,
    Verb,
    begins_with_vowel,
)


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


def pronoun(english: str) -> Subject:
    """ "she", "elle"."""
    french, feminine = PRONOUNS[english]
    return Subject(word(english, french), feminine, english == "they", "person", "")


def joined(first: Subject, second: Subject) -> Subject:
    """Two noun phrases with "and" between them."""
    phrase = first.phrase + word("and", "et") + second.phrase
    return Subject(phrase, first.feminine and second.feminine, True, first.kind, "")


def described(
    determiner: str,
    noun: Noun,
    *,
    plural: bool,
    before: Adjective | None,
    after: Adjective | None,
) -> Subject:
    """English: determiner, adjectives, noun. French: determiner, one adjective, noun, the other."""
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
    return Subject(phrase, noun.feminine, plural, next(iter(noun.kinds)), noun.english)


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


def thing(found: Phrase, *, negated: bool) -> Phrase:
    """The object of a verb. French says "pas de pomme" for "not an apple"."""
    if not negated or found.french[0] not in ("un", "une"):
        return found
    return replace(found, french=(_elided("de", found.french[1]), *found.french[1:]))


def being(*, plural: bool, negated: bool) -> Phrase:
    """ "is", "est"; or "is not", "n'est pas"."""
    english, french = ("are", "sont") if plural else ("is", "est")
    if not negated:
        return word(english, french)
    return Phrase((english, "not"), (_elided("ne", french), french, "pas"), ((1,), (0,), (1,)))


def _elided(word: str, following: str) -> str:
    return f"{word[0]}'" if begins_with_vowel(following) else word


def quality(adjective: Adjective, subject: Subject, *, very: bool) -> Phrase:
    """An adjective after "is", which agrees with the subject; or the same with "very"."""
    form = adjective.french(feminine=subject.feminine, plural=subject.plural)
    pairs = ((adjective.english, subject.noun),) if subject.noun else ()
    said = Phrase((adjective.english,), (form,), ((0,),), pairs)
    return word("very", "très") + said if very else said
