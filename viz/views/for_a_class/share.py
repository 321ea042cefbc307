"""One link for the class, and the line that shows a view in a page of one's own."""

import html
from dataclasses import replace

import segno
import streamlit as st

from model.system.settings import settings
from viz.notation.numbers import counted
from viz.saving.save import page_address
from viz.shell import class_bar
from viz.shell.panel import Panel
from viz.state.class_views import HOURS, JOIN
from viz.state.embedded import frame_line
from viz.state.link import address, short_link
from viz.state.look import Look
from viz.state.navigation import HOME, entry
from viz.state.session import current
from viz.views.for_a_class.lesson import STYLE
from viz.views.for_a_class.reach import HOW_TO_SHARE, class_address


def share(look: Look) -> Panel:
    """A button that begins a class; then its link, with a code to scan."""
    if class_bar.is_late():
        st.rerun()
    return Panel("share", picture=_share)


def _share() -> None:
    st.html(STYLE)
    mine, root = class_bar.led(), class_address("./")
    told, coded = st.columns([3, 2], gap="large")
    with told:
        st.subheader("One link for the class", anchor=False)
        if mine is None:
            st.markdown(
                "Your class opens one link and sees what you see: the model, the sentence, the head, the "
                "cell and your changes. When you show another page, each pupil gets a link to it. Until "
                "then, everyone explores alone."
            )
            st.button("Begin a class", type="primary", on_click=class_bar.begin, args=(HOME,))
        else:
            link = address(root or page_address("./"), {JOIN: mine.code})
            with st.container(key="class-link"):
                st.code(link, language=None, wrap_lines=True)
            st.markdown(
                "Every page now has a line with **Show this page**: it shows your class what you see there. "
                "After a reload the class goes on: this browser keeps it."
            )
        st.html(_what_it_opens(is_shared=root is not None))
        _embed()
    with coded:
        if root is None:
            st.subheader("Open the app to the room", anchor=False)
            st.markdown(HOW_TO_SHARE)
        else:
            _code(
                root if mine is None else address(root, {JOIN: mine.code}), is_led=mine is not None
            )


def _what_it_opens(*, is_shared: bool) -> str:
    """Who can reach the app, what a class sees and does not see, and how it ends."""
    said = {
        "Who can reach it": "Everybody who has the link and is in its network; there is no password."
        if is_shared
        else "You, at this computer, and nobody else.",
        "What they see": "The app, and of your work what you show with “Show this page”.",
        "What they do not see": "Your other pages and sentences, and those of each other. You see nothing of "
        "your pupils either.",
        "How it ends": "With “End the class”, or with the app; else "
        f"{counted(int(HOURS), 'hour')} after the last view that you showed.",
    }
    rows = "".join(f"<div><dt>{name}</dt><dd>{words}</dd></div>" for name, words in said.items())
    return f'<dl class="opened">{rows}</dl>'


def _code(link: str, *, is_led: bool) -> None:
    """A link as a code to scan: dark on white in both themes."""
    drawn = segno.make(link, error="m", micro=False).svg_data_uri(
        scale=8, dark="#000", light="#fff", border=3
    )
    words = "Scan to join" if is_led else "Scan to open the app"
    st.html(
        f'<figure class="scanned"><img alt="QR code: {words}" src="{html.escape(drawn)}">'
        f"<figcaption>{words}</figcaption></figure>"
    )


def _embed() -> None:
    """The line that shows the open view in a frame of a page of one's own, where the server allows that."""
    if not settings().frame_ancestors:
        return
    st.subheader("In a page of your own", anchor=False)
    view = short_link(replace(current(), show=""))[0]
    st.markdown("This line shows your view there, live and without the menu:")
    st.code(
        frame_line(page_address(entry(HOME).address), view, entry(HOME).title),
        language="html",
        wrap_lines=True,
    )
