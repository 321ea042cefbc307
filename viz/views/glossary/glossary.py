"""The terms of the glossary, and links to them. Pure.

A page links a term in its Markdown: f"The {glossary_link('softmax')} turns scores into weights."
"""

import tomllib
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from viz.notation.markdown import plain
from viz.state.link import address


@dataclass(frozen=True)
class Term:
    """A term, what it means in one sentence, and the page where it is used.

    example: the worked example that shows it with numbers. also: other names of the same thing.
    """

    name: str
    meaning: str
    page: str
    example: str | None = None
    also: tuple[str, ...] = ()


def _written() -> tuple[Term, ...]:
    data = tomllib.loads(Path(__file__).with_name("terms.toml").read_text(encoding="utf-8"))
    return tuple(Term(**entry | {"also": tuple(entry.get("also", ()))}) for entry in data["term"])


TERMS = _written()
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


def sections(least: int = 16) -> dict[str, tuple[Term, ...]]:
    """All terms by letters of the alphabet ("A–C"), at least so many in each part but the last."""
    parts: list[list[Term]] = [[]]
    for _, terms in groupby(TERMS, lambda found: found.name[0].upper()):
        if len(parts[-1]) >= least:
            parts.append([])
        parts[-1] += terms
    return {f"{part[0].name[0].upper()}–{part[-1].name[0].upper()}": tuple(part) for part in parts}


def glossary_link(name: str, words: str = "") -> str:
    """Markdown: a link that opens the glossary at a term, from any page.

    words: what the link says; the name as it was given where this is empty. Raises KeyError as
    `term` does.
    """
    return f"[{plain(words or name)}]({address('/glossary', {'term': term(name).name})})"


def _names(found: Term) -> str:
    return " ".join((found.name, *found.also)).casefold()
