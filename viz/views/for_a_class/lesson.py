"""The lesson: blocks of minutes, each a link that opens the app where it is needed."""

import html
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import accumulate
from pathlib import Path

import streamlit as st

from model.nn.intervention import Intervention
from viz.notation.words import sentences_of
from viz.saving.offline_page import standalone
from viz.shell.panel import Panel
from viz.state.link import View, address, opening_link
from viz.state.look import Look
from viz.state.navigation import HOME, html_link
from viz.state.navigation import entry as page_entry
from viz.state.presets import EXAMPLES
from viz.views.for_a_class.reach import HOW_TO_SHARE, class_address

say = sentences_of("for_a_class.lesson")

FILE = Path(__file__).with_suffix(".toml")
STYLE = f"<style>{Path(__file__).with_name('teach.css').read_text(encoding='utf-8')}</style>"
_WALK = {"tokens": "pages/tokens.py", "next": "pages/prediction.py"}  # the site's parts, as pages
_CHANGES = {
    "": Intervention(),
    "mask": Intervention(mask="none"),
    "scale": Intervention(scale=1.0),
    "positions": Intervention(positions=False),
}


@dataclass(frozen=True)
class LessonPart:
    """One block of the lesson. All texts are plain, not Markdown."""

    begin: int  # minute
    end: int
    title: str
    look: str
    ask: str
    expect: str  # what is a good answer
    page: str  # its file
    link: Mapping[str, str]  # the parameters that open it there


@cache
def parts() -> tuple[LessonPart, ...]:
    """The lesson as lesson.toml has it."""
    written = tomllib.loads(FILE.read_text(encoding="utf-8"))["part"]
    ends = accumulate(part["minutes"] for part in written)
    return tuple(_part(part, end) for part, end in zip(written, ends, strict=True))


def _part(said: Mapping[str, str], end: int) -> LessonPart:
    """A part that ends at a minute, with what it opens in the app."""
    example = next((one for one in EXAMPLES if one.title == said.get("sentence")), None)
    if said["page"] == "worked":
        page, link = "pages/worked_examples.py", {"example": said["at"]}
    else:
        page = HOME if said["page"] == "explore" else _WALK[said["at"]]
        view = replace(
            View() if example is None else example.view,
            intervention=_CHANGES[said.get("change", "")],
            stage=said.get("stage", "weights"),
        )
        link = opening_link(view)
    look = said.get("look") or (example.look_for if example else "")
    begin = end - int(said["minutes"])
    return LessonPart(begin, end, said["title"], look, said["ask"], said["expect"], page, link)


def lesson(look: Look) -> Panel:
    """The parts with their minutes, and the list as a page to print."""
    root = class_address("./")
    with st.container(key="class-files", width="content"):
        st.download_button(
            say("lesson_print"),
            partial(lesson_page, root),
            file_name="lesson.html",
            mime="text/html",
            icon=":material/download:",
            on_click="ignore",
        )
    rows = "".join(
        f'<li><p class="minutes">{part.begin}–{part.end} min</p>'
        f"<div><h3>{html_link(part.page, part.title, part.link)}</h3><p>{html.escape(part.look)}</p></div>"
        f'<div><p class="ask">{html.escape(part.ask)}</p>'
        f'<p class="expect">{html.escape(part.expect)}</p></div></li>'
        for part in parts()
    )
    heads = '<li class="heads"><p></p><p>Open, and look</p><p>Ask, and what to expect</p></li>'
    return Panel(
        "lesson", picture=partial(st.html, f'{STYLE}<ol class="lesson">{heads}{rows}</ol>')
    )


def lesson_page(root: str | None) -> bytes:
    """The lesson as a page to print. root: where the class finds the app; None where it cannot."""

    def opened(part: LessonPart) -> str:
        if root is None:
            return ""
        link = address(root + page_entry(part.page).address, part.link)
        return f"<br><code>{html.escape(link)}</code>"

    rows = "".join(
        f"<tr><td>{part.begin}–{part.end}</td><td><p><strong>{html.escape(part.title)}</strong><br>"
        f"Look: {html.escape(part.look)}<br>Ask: {html.escape(part.ask)}<br>"
        f"Expect: {html.escape(part.expect)}{opened(part)}</p></td></tr>"
        for part in parts()
    )
    how = "" if root else f"<p>{html.escape(HOW_TO_SHARE.replace('`', ''))}</p>"
    title = f"A lesson of {parts()[-1].end} minutes"
    return standalone(title, f"{how}<table><tr><th>minutes</th><th></th></tr>{rows}</table>", {})
