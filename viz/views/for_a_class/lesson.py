"""The lesson: blocks of minutes, each a link that opens the app where it is needed; and one link for the
class."""

import html
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import segno
import streamlit as st

from model.system.settings import settings
from viz.notation.markdown import plain
from viz.notation.numbers import counted
from viz.saving.offline_page import standalone
from viz.saving.save import page_address
from viz.shell import class_bar
from viz.state.class_views import HOURS
from viz.state.embedded import frame_line
from viz.state.link import View, address, from_link, opening_link, short_link
from viz.state.navigation import entry, page_link
from viz.state.presets import EXAMPLES
from viz.state.session import current
from viz.views.for_a_class.reach import warn_of_a_local_address


@dataclass(frozen=True)
class LessonPart:
    """One block of the lesson. All texts are plain, not Markdown."""

    minutes: int
    title: str
    page: str  # its file
    link: Mapping[str, str]  # the parameters that open it there
    look: str
    ask: str
    expect: str  # what is a good answer


@cache
def parts() -> tuple[LessonPart, ...]:
    """The lesson as lesson.toml has it."""
    data = tomllib.loads(Path(__file__).with_name("lesson.toml").read_text(encoding="utf-8"))
    return tuple(_part(**one) for one in data["part"])


def _part(sentence: str = "", opens: Mapping[str, str] | None = None, **said: Any) -> LessonPart:
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
    return LessonPart(
        link=(opening_link(view) if view != View() or sentence else {}) | others, **said
    )


def lesson() -> None:
    """The parts with the minutes at which they begin, and the list as a page to print."""
    known = parts()
    warn_of_a_local_address()
    links = (address(page_address(entry(part.page).address or "./"), part.link) for part in known)
    st.download_button(
        "The lesson, to print",
        partial(lesson_page, tuple(links)),
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
            st.caption(f"Expect: {plain(part.expect)}")


def lesson_page(addresses: tuple[str, ...]) -> bytes:
    """The lesson as a page to print. addresses: those of the parts, in order."""
    known = parts()
    ends = accumulate(part.minutes for part in known)
    rows = "".join(
        f"<tr><td>{end - part.minutes}–{end}</td><td><p><strong>{html.escape(part.title)}</strong><br>"
        f"Look: {html.escape(part.look)}<br>Ask: {html.escape(part.ask)}<br>"
        f"Expect: {html.escape(part.expect)}<br>"
        f"<code>{html.escape(link)}</code></p></td></tr>"
        for part, end, link in zip(known, ends, addresses, strict=True)
    )
    title = f"A lesson of {sum(part.minutes for part in known)} minutes"
    return standalone(title, f"<table><tr><th>minutes</th><th></th></tr>{rows}</table>", {})


FIRST = "pages/home.py"  # the page that a class is shown first


def share() -> None:
    """A button that begins a class; then its link."""
    if class_bar.is_late():
        st.rerun()
    mine = class_bar.led()
    if mine is None:
        st.markdown(
            "Your class opens one short link and sees what you see: the model, the sentence, the layer, the "
            "head, the cell and your changes. When you show another page, each pupil gets a link to it. "
            "Until then, everyone can explore alone."
        )
        st.button("Share with the class", type="primary", on_click=class_bar.begin, args=(FIRST,))
        st.caption(
            "Nobody sees what you have not shown, and you see nothing of your pupils. The class ends when "
            f"you end it, or {counted(int(HOURS), 'hour')} after the last view that you showed."
        )
        _embed()
        return
    link = address(page_address("./"), {class_bar.JOIN: mine.code})
    with st.container(horizontal=True, gap="large"):
        with st.container():
            warn_of_a_local_address()
            st.markdown("The link for your class:")
            st.code(link, language=None, wrap_lines=True)
            st.markdown(
                "On every page there is now a line with **Show this page**: it shows your class what you "
                "see there. After a reload the class goes on: this browser keeps it."
            )
        drawn = segno.make(link, error="m", micro=False).svg_data_uri(
            scale=6, dark="#000", light="#fff", border=4
        )  # dark on white in both themes
        alt = "QR code of the link for your class"
        st.html(f'<img alt="{alt}" src="{html.escape(drawn)}">', width="content")
    _embed()


def _embed() -> None:
    """The line that shows the open view in a frame of a page of one's own."""
    st.subheader("Embed")
    if not settings().frame_ancestors:
        st.caption(
            "Other sites cannot show this app in a frame. Whoever runs it can allow it for single sites."
        )
        return
    view = short_link(replace(current(), show=""))[0]
    st.markdown("On a page of your own, this line shows your view, live and without the menu:")
    st.code(
        frame_line(page_address(entry(FIRST).address), view, entry(FIRST).title),
        language="html",
        wrap_lines=True,
    )
