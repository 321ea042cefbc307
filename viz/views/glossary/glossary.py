"""The terms of the glossary, and links to them. Pure.

A page links a term in its Markdown: f"The {glossary_link('softmax')} turns scores into weights."
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from viz.notation.markdown import plain
from viz.notation.theme import QuantityName
from viz.state.link import address


@dataclass(frozen=True)
class Term:
    """A term, what it means in one sentence, its topic in the Library, and the page where it is used; "": the
    app does not show it.

    example: the worked example that shows it with numbers. also: other names of the same thing. typed: words
    by which the search finds it beside these. picture: the example and the step whose result its small
    picture shows, in the colours of `quantity`; where there is no such step, its pieces are written in boxes,
    or `miniatures` makes a picture.
    """

    name: str
    meaning: str
    page: str
    topic: str
    example: str | None = None
    also: tuple[str, ...] = ()
    typed: tuple[str, ...] = ()
    picture: tuple[str, ...] = ()
    quantity: QuantityName = "stream"
    pieces: tuple[str, ...] = ()


def _term(entry: Mapping[str, Any]) -> Term:
    lists = {name: tuple(value) for name, value in entry.items() if isinstance(value, list)}
    return Term(**{**entry, **lists})


_TERM = re.compile(r"\[([^\]]*)\]\(term:([^)]*)\)")
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


def with_terms(text: str) -> str:
    """Markdown whose links to terms, `[queries](term:query)`, open the Library."""
    return _TERM.sub(lambda link: glossary_link(link[2], link[1]), text)


def glossary_link(name: str, words: str = "") -> str:
    """Markdown: a link that opens the Library at a term, from any page.

    words: what the link says; the name as it was given where this is empty. Raises KeyError as
    `term` does.
    """
    return f"[{plain(words or name)}]({address('/library', {'term': term(name).name})})"
