"""The lesson: blocks of minutes, each a link that opens the app where it is needed."""

import html
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import streamlit as st

from viz.notation.markdown import plain
from viz.saving.offline_page import standalone
from viz.saving.save import page_address
from viz.state.examples import EXAMPLES
from viz.state.link import address, from_link, opening_link
from viz.state.menu import entry
from viz.state.navigation import page_link
from viz.state.view import View


@dataclass(frozen=True)
class Part:
    """One block of the lesson. All texts are plain, not Markdown."""

    minutes: int
    title: str
    page: str  # its file
    link: Mapping[str, str]  # the parameters that open it there
    look: str
    ask: str


@cache
def parts() -> tuple[Part, ...]:
    """The lesson as lesson.toml has it."""
    data = tomllib.loads(Path(__file__).with_name("lesson.toml").read_text(encoding="utf-8"))
    return tuple(_part(**one) for one in data["part"])


def _part(sentence: str = "", opens: Mapping[str, str] | None = None, **said: Any) -> Part:
    """sentence: the title of an example, whose view the link opens. opens: parameters of the link."""
    opens, link = dict(opens or {}), dict[str, str]()
    if sentence:
        (example,) = [each for each in EXAMPLES if each.title == sentence]
        link = opening_link(example.view)
        said = {"look": example.look_for} | said
    view, problems = from_link(link | opens)
    if problems:
        raise ValueError(" ".join(problems))
    others = {name: value for name, value in opens.items() if name == "example"}
    return Part(link=(opening_link(view) if view != View() or sentence else {}) | others, **said)


def lesson(*given: object) -> None:
    """The parts with the minutes at which they begin, and the list as a page to print."""
    known = parts()
    st.download_button(
        "The lesson, to print",
        partial(lesson_page, _addresses()),
        file_name="lesson.html",
        mime="text/html",
        icon=":material/download:",
        on_click="ignore",
    )
    ends = list(accumulate(part.minutes for part in known))
    for part, end in zip(known, ends, strict=True):
        when, what = st.columns([1, 8], gap="small")
        when.markdown(f"**{end - part.minutes}–{end} min**")
        with what:
            page_link(part.page, f"**{plain(part.title)}** →", **part.link)
            st.markdown(f"Look: {plain(part.look)}  \nAsk: {plain(part.ask)}")


def lesson_page(addresses: tuple[str, ...]) -> bytes:
    """The lesson as a page to print. addresses: those of the parts, in order."""
    known = parts()
    ends = accumulate(part.minutes for part in known)
    rows = "".join(
        f"<tr><td>{end - part.minutes}–{end}</td><td><p><strong>{html.escape(part.title)}</strong><br>"
        f"Look: {html.escape(part.look)}<br>Ask: {html.escape(part.ask)}<br>"
        f"<code>{html.escape(link)}</code></p></td></tr>"
        for part, end, link in zip(known, ends, addresses, strict=True)
    )
    title = f"A lesson of {sum(part.minutes for part in known)} minutes"
    return standalone(title, f"<table><tr><th>minutes</th><th></th></tr>{rows}</table>", {})


def _addresses() -> tuple[str, ...]:
    return tuple(address(page_address(_name(part.page)), part.link) for part in parts())


def _name(file: str) -> str:
    return entry(file).address or "./"
