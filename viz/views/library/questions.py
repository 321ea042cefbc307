"""Questions of a reader, their answers, and where each can be seen. They stand in questions.toml. Pure."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from viz.state.navigation import PageEntry, read_address
from viz.views.glossary.glossary import term
from viz.views.worked.by_hand import worked_example

_FILE = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True)
class PageAddress:
    """A page of the app and the parameters of its address."""

    page: PageEntry
    parameters: dict[str, str]

    @property
    def label(self) -> str:
        """What it opens, by name: a worked example, a term, a view of a page, or the page."""
        if "example" in self.parameters:
            return worked_example(self.parameters["example"]).title
        if "term" in self.parameters:
            return term(self.parameters["term"]).name
        names = ("show", "claim", "cost-measure")
        views = [self.parameters[name] for name in names if name in self.parameters]
        return " · ".join([self.page.title, *views])


@dataclass(frozen=True)
class ReaderQuestion:
    """A question in the reader's words, and its answer in one or two sentences.

    about: the term whose small picture stands beside it. links: the app's addresses that show it, the best
    one first. also: other words to find it by.
    """

    topic: str
    words: str
    answer: str
    about: str
    links: tuple[str, ...]
    also: tuple[str, ...] = ()

    def opens(self) -> tuple[PageAddress, ...]:
        """Its links, read. Raises KeyError where one names no page."""
        return tuple(PageAddress(*read_address(link)) for link in self.links)


@cache
def questions() -> tuple[ReaderQuestion, ...]:
    """All of them, topic by topic."""
    listed: list[dict[str, Any]] = tomllib.loads(_FILE.read_text(encoding="utf-8"))["question"]
    return tuple(
        ReaderQuestion(**one | {name: tuple(one.get(name, ())) for name in ("links", "also")})
        for one in listed
    )
