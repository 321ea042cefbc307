"""Parses English words into a phrase of the grammar, with its French and its links."""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TypeVar

from model.training import lexicon, phrases
from model.training.phrases import Phrase, Subject

T = TypeVar("T")

_ARTICLES = {**{english: english for english in lexicon.DETERMINERS}, "an": "a"}
_NOUNS = {
    **{noun.english: (noun, False) for noun in lexicon.NOUNS},
    **{noun.english_plural: (noun, True) for noun in lexicon.NOUNS},
}
_ADJECTIVES = {adjective.english: adjective for adjective in lexicon.ADJECTIVES}
_BEFORE = {english: found for english, found in _ADJECTIVES.items() if found.before}
_AFTER = {english: found for english, found in _ADJECTIVES.items() if not found.before}
_VERBS = {
    **{verb.english: (verb, False) for verb in lexicon.VERBS},
    **{verb.english_plural: (verb, True) for verb in lexicon.VERBS},
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
    reader = _Reader(english)
    try:
        phrase = reader.sentence()
    except _NotOfTheGrammarError:
        return None
    return phrase if phrase.english == tuple(english) else None


class _Reader:
    """Reads words from left to right; `_left` are those still to be read."""

    def __init__(self, words: Iterable[str]) -> None:
        self._left = list(words)

    def sentence(self) -> Phrase:
        subject = self._subject()
        phrase = subject.phrase
        if self._left and not self._next({"."}):
            phrase += self._predicate(subject)
        if self._skipped("."):
            phrase += phrases.word(".", ".")
        self._holds(not self._left)
        return phrase

    def _subject(self) -> Subject:
        if self._next(lexicon.PRONOUNS):
            return phrases.pronoun(self._left.pop(0))
        first = self._described()
        return phrases.joined(first, self._described()) if self._skipped("and") else first

    def _described(self) -> Subject:
        """A determiner, adjectives and a noun."""
        determiner = self._taken(_ARTICLES)
        before = self._taken(_BEFORE) if self._next(_BEFORE) else None
        after = self._taken(_AFTER) if self._next(_AFTER) else None
        noun, plural = self._taken(_NOUNS)
        self._holds(lexicon.DETERMINERS[determiner][3 if plural else 0] is not None)
        return phrases.described(determiner, noun, plural=plural, before=before, after=after)

    def _predicate(self, subject: Subject) -> Phrase:
        if self._next(_BEING):
            return self._being(subject)
        negated = self._next(_HELPERS)
        if negated:
            self._holds(self._taken(_HELPERS) == subject.plural)
            self._holds(self._skipped("not"))
        verb, plural = self._taken(_VERBS)
        self._holds(plural == (True if negated else subject.plural))
        said = phrases.doing(verb, plural=subject.plural, negated=negated)
        return said + self._object(negated=negated) + self._place()

    def _being(self, subject: Subject) -> Phrase:
        self._holds(self._taken(_BEING) == subject.plural)
        verb = phrases.being(plural=subject.plural, negated=self._skipped("not"))
        if self._next(lexicon.PREPOSITIONS):
            return verb + self._place()
        very = self._skipped("very")
        return verb + phrases.quality(self._taken(_ADJECTIVES), subject, very=very)

    def _object(self, *, negated: bool) -> Phrase:
        if not self._next(_ARTICLES):
            return _NOTHING
        return phrases.thing(self._described().phrase, negated=negated)

    def _place(self) -> Phrase:
        if not self._next(lexicon.PREPOSITIONS):
            return _NOTHING
        english = self._left[0]
        return phrases.word(english, self._taken(lexicon.PREPOSITIONS)) + self._described().phrase

    def _next(self, known: Container[str]) -> bool:
        """Whether one of these words comes next."""
        return bool(self._left) and self._left[0] in known

    def _taken(self, known: Mapping[str, T]) -> T:
        """Reads the next word; returns what it stands for."""
        self._holds(self._next(known))
        return known[self._left.pop(0)]

    def _skipped(self, expected: str) -> bool:
        """Reads the next word if it is this one; returns whether it was."""
        found = self._next({expected})
        if found:
            self._left.pop(0)
        return found

    def _holds(self, law: bool) -> None:
        if not law:
            raise _NotOfTheGrammarError
