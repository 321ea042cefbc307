"""One link for the class, and the line that shows a view in a page of one's own."""

import html
from dataclasses import replace

import segno
import streamlit as st

from model.system.settings import settings
from viz.notation.words import sentences_of
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

say = sentences_of("for_a_class.share")


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
        st.subheader(say("link_class"), anchor=False)
        if mine is None:
            st.markdown(say("class_opens_link"))
            st.button("Begin a class", type="primary", on_click=class_bar.begin, args=(HOME,))
        else:
            link = address(root or page_address("./"), {JOIN: mine.code})
            with st.container(key="class-link"):
                st.code(link, language=None, wrap_lines=True)
            st.markdown(say("every_page_now_line"))
        st.html(_what_it_opens(is_shared=root is not None))
        _embed()
    with coded:
        if root is None:
            st.subheader(say("open_app_room"), anchor=False)
            st.markdown(HOW_TO_SHARE)
        else:
            _code(
                root if mine is None else address(root, {JOIN: mine.code}), is_led=mine is not None
            )


def _what_it_opens(*, is_shared: bool) -> str:
    """Who can reach the app, what a class sees and does not see, and how it ends."""
    said = {
        say("who_reach"): say("everybody_who_link") if is_shared else say("computer_nobody_else"),
        "What they see": say("app_work_show_show"),
        say("not_see"): say("other_pages_sentences"),
        "How it ends": say("end_class_app_else", hours=int(HOURS)),
    }
    rows = "".join(f"<div><dt>{name}</dt><dd>{words}</dd></div>" for name, words in said.items())
    return f'<dl class="opened">{rows}</dl>'


def _code(link: str, *, is_led: bool) -> None:
    """A link as a code to scan: dark on white in both themes."""
    drawn = segno.make(link, error="m", micro=False).svg_data_uri(
        scale=8, dark="#000", light="#fff", border=3
    )
    words = "Scan to join" if is_led else say("scan_open_app")
    st.html(
        f'<figure class="scanned"><img alt="QR code: {words}" src="{html.escape(drawn)}">'
        f"<figcaption>{words}</figcaption></figure>"
    )


def _embed() -> None:
    """The line that shows the open view in a frame of a page of one's own, where the server allows that."""
    if not settings().frame_ancestors:
        return
    st.subheader(say("page_own"), anchor=False)
    view = short_link(replace(current(), show=""))[0]
    st.markdown(say("line_shows_view"))
    st.code(
        frame_line(page_address(entry(HOME).address), view, entry(HOME).title),
        language="html",
        wrap_lines=True,
    )
