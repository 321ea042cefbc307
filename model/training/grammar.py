"""A grammar that draws sentences in English and French, and which of them are held out."""

import zlib
from typing import TypeVar

from model.training import lexicon, phrases
from model.training.lexicon import Adjective, Noun
from model.training.phrases import Phrase, Subject
from model.training.recipe import Random

T = TypeVar("T")

_AT = {
    "in": ("place",), "on": ("thing",), "under": ("thing",), "behind": ("place", "thing"),
    "with": ("person", "animal"),
}  # fmt: skip
_FUNCTION_WORDS = ". an and et do does not ne n' pas de d' cet is are est sont very très"
_ALIVE = frozenset({"person", "animal"})


def is_held_out_pair(adjective: str, noun: str) -> bool:
    """One adjective–noun pair in ten is in no sentence for training."""
    return zlib.crc32(f"{adjective} {noun}".encode()) % 10 == 0


def is_held_out_sentence(phrase: Phrase) -> bool:
    """One English sentence in ten is not for training."""
    return zlib.crc32(" ".join(phrase.english).encode()) % 10 == 3


def sentence(random: Random) -> Phrase:
    """A noun phrase alone (one in eight), or a sentence; with a full stop in two of three."""
    phrase = noun_phrase(random).phrase if random.random() < 1 / 8 else _clause(random)
    return phrase + phrases.word(".", ".") if random.random() < 2 / 3 else phrase


def noun_phrase(random: Random, kinds: frozenset[str] | None = None) -> Subject:
    """A determiner, at most two adjectives and a noun of one of the kinds."""
    noun = _one(random, [noun for noun in lexicon.NOUNS if kinds is None or noun.kinds & kinds])
    plural = random.random() < 0.25 and "drink" not in noun.kinds
    column = 3 if plural else 0
    determiners = [english for english, french in lexicon.DETERMINERS.items() if french[column]]
    determiner = "the" if random.random() < 0.4 else _one(random, determiners)
    before, after = _adjectives(random, noun)
    return phrases.described(determiner, noun, plural=plural, before=before, after=after)


def _adjectives(random: Random, noun: Noun) -> tuple[Adjective | None, Adjective | None]:
    """An adjective that French puts before the noun and one that it puts after it; often one or none."""
    amount = random.random()
    before = _adjective(random, noun, before=True) if amount < 0.3 else None
    after = _adjective(random, noun, before=False) if 0.25 < amount < 0.65 else None
    return before, after


def _adjective(random: Random, noun: Noun, *, before: bool | None = None) -> Adjective:
    """One that suits the noun, or in one of five cases any."""
    anything = random.random() < 0.2
    return _one(
        random,
        [
            adjective
            for adjective in lexicon.ADJECTIVES
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
    verb = _one(random, [verb for verb in lexicon.VERBS if subject.kind in verb.by])
    negated = random.random() < 0.2
    phrase = subject.phrase + phrases.doing(verb, plural=subject.plural, negated=negated)
    if verb.of:
        return phrase + phrases.thing(noun_phrase(random, verb.of).phrase, negated=negated)
    return phrase + _place(random) if random.random() < 0.4 else phrase


def _subject(random: Random, *, alive: bool = False) -> Subject:
    """A noun phrase, a pronoun, or two noun phrases joined by "and"."""
    choice = random.random()
    if choice < 0.12:
        return phrases.pronoun(_one(random, [*lexicon.PRONOUNS]))
    first = noun_phrase(random, _ALIVE if alive else None)
    if choice < 0.2:
        return phrases.joined(first, noun_phrase(random, frozenset({first.kind})))
    return first


def _is(random: Random, subject: Subject) -> Phrase:
    """ "is not black", "n'est pas noir"; or where something is."""
    verb = phrases.being(plural=subject.plural, negated=random.random() < 0.3)
    if random.random() < 0.25:
        return subject.phrase + verb + _place(random)
    kind = frozenset({subject.kind})
    noun = next(
        noun for noun in lexicon.NOUNS if noun.english == subject.noun or noun.kinds == kind
    )
    adjective = _adjective(random, noun)
    return subject.phrase + verb + phrases.quality(adjective, subject, very=random.random() < 0.2)


def _place(random: Random) -> Phrase:
    english, french = _one(random, [*lexicon.PREPOSITIONS.items()])
    return phrases.word(english, french) + noun_phrase(random, frozenset(_AT[english])).phrase


def _one(random: Random, fitting: list[T]) -> T:
    return fitting[random.integers(len(fitting))]


def words() -> tuple[str, ...]:
    """Every word of both languages, sorted."""
    found = set(_FUNCTION_WORDS.split())
    found |= {
        form for english, forms in lexicon.DETERMINERS.items() for form in (english, *forms) if form
    }
    found |= {
        form for english, (french, _) in lexicon.PRONOUNS.items() for form in (english, french)
    }
    found |= {form for pair in lexicon.PREPOSITIONS.items() for form in pair}
    for entry in (*lexicon.NOUNS, *lexicon.ADJECTIVES, *lexicon.VERBS):
        found |= {form for form in vars(entry).values() if isinstance(form, str)}
    return tuple(sorted(found))
