"""Terms by name, and links to them. Pure.

A page links a term in its Markdown: f"The {glossary_link('softmax')} turns scores into weights."
"""

from itertools import groupby
from urllib.parse import urlencode

from viz.notation.markdown import plain
from viz.views.glossary.terms import TERMS, Term

__all__ = ["TERMS", "Term", "glossary_link", "matching", "sections", "term"]

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
    """The terms whose names or meanings hold all of these words; those named so come first."""
    wanted = words.casefold().split()
    named = [found for found in TERMS if all(word in _names(found) for word in wanted)]
    meant = [
        found
        for found in TERMS
        if all(word in f"{_names(found)} {found.meaning.casefold()}" for word in wanted)
    ]
    return tuple(dict.fromkeys((*named, *meant)))


def sections(least: int = 16) -> dict[str, tuple[Term, ...]]:
    """All terms in parts of the alphabet of at least so many, by their letters: "A–C"."""
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
    question = urlencode({"term": term(name).name})
    return f"[{plain(words or name)}](/glossary?{question})"


def _names(found: Term) -> str:
    return " ".join((found.name, *found.also)).casefold()
