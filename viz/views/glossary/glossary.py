"""The terms of the glossary, and links to them. Pure.

A page links a term in its Markdown: f"The {glossary_link('softmax')} turns scores into weights."
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from viz.notation.markdown import plain
from viz.notation.theme import QuantityName
from viz.state.link import address


@dataclass(frozen=True)
class Term:
    """A term, what it means in one sentence, and the page where it is used.

    example: the worked example that shows it with numbers. also: other names of the same thing. picture: the
    example and the step whose result its small picture shows, in the colours of `quantity`; where there is no
    such step, its pieces are written in boxes, or `miniatures` makes a picture.
    """

    name: str
    meaning: str
    page: str
    example: str | None = None
    also: tuple[str, ...] = ()
    picture: tuple[str, ...] = ()
    quantity: QuantityName = "stream"
    pieces: tuple[str, ...] = ()

    @property
    def letter(self) -> str:
        """Where it stands in the alphabet."""
        return self.name[0].upper() if self.name.isascii() else self.name[0]


def _term(entry: Mapping[str, Any]) -> Term:
    lists = {name: tuple(value) for name, value in entry.items() if isinstance(value, list)}
    return Term(**{**entry, **lists})


_FILE = Path(__file__).with_name("terms.toml")
TERMS = tuple(map(_term, tomllib.loads(_FILE.read_text(encoding="utf-8"))["term"]))
_NAMES = {name.casefold(): term for term in TERMS for name in (term.name, *term.also)}


def term(name: str) -> Term:
    """The term of a name or another name of it, in capitals or not.

    Raises KeyError with a sentence if the glossary does not have it.
    """
    try:
        return _NAMES[" ".join(name.split()).casefold()]
    except KeyError:
        raise KeyError(f"The glossary has no term “{name}”.") from None


def matching(words: str) -> tuple[Term, ...]:
    """The terms whose names or meanings hold all of these words; matches in a name come first."""
    wanted = words.casefold().split()
    found = [
        entry
        for entry in TERMS
        if all(word in f"{_names(entry)} {entry.meaning.casefold()}" for word in wanted)
    ]
    return tuple(sorted(found, key=lambda entry: any(word not in _names(entry) for word in wanted)))


def by_letter(terms: Iterable[Term]) -> dict[str, tuple[Term, ...]]:
    """Terms in the order of the alphabet, under their letters."""
    return {letter: tuple(found) for letter, found in groupby(terms, attrgetter("letter"))}


def glossary_link(name: str, words: str = "") -> str:
    """Markdown: a link that opens the glossary at a term, from any page.

    words: what the link says; the name as it was given where this is empty. Raises KeyError as
    `term` does.
    """
    return f"[{plain(words or name)}]({address('/glossary', {'term': term(name).name})})"


def _names(found: Term) -> str:
    return " ".join((found.name, *found.also)).casefold()
