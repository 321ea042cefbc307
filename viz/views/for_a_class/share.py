"""One link for the whole class: what the lecturer sees, and a square code of the link."""

import html
from dataclasses import replace

import segno
import streamlit as st

from model.system.settings import settings
from viz.notation.numbers import counted
from viz.saving.save import page_address
from viz.shell import class_bar
from viz.state.class_views import HOURS
from viz.state.embedded import frame_line
from viz.state.link import address, short_link
from viz.state.menu import entry
from viz.state.session import current

FIRST = "pages/attention.py"  # the page that a class is shown first


def share(*given: object) -> None:
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
    words, picture = st.columns([3, 2], gap="large")
    with words:
        st.markdown("The link for your class:")
        st.code(link, language=None, wrap_lines=True)
        st.markdown(
            "On every page there is now a line with **Show this page**: it shows your class what you see "
            "there. Keep this tab open: after a reload your class needs a new link."
        )
    picture.html(square_code(link))
    _embed()


def _embed() -> None:
    """The line that shows the open view in a frame of a page of one's own."""
    st.subheader("Embed")
    if not settings().frame_ancestors:
        st.caption(
            "Other sites cannot show this app in a frame. Whoever runs it names the sites that may, in "
            "`ATTENTION_FRAME_ANCESTORS`."
        )
        return
    view = short_link(replace(current(), show=""))[0]
    st.markdown("On a page of your own, this line shows your view, live and without the menu:")
    st.code(
        frame_line(page_address(entry(FIRST).address), view, entry(FIRST).title),
        language="html",
        wrap_lines=True,
    )


def square_code(link: str) -> str:
    """A picture of a QR code in HTML, dark on white in both themes."""
    drawn: str = segno.make(link, error="m", micro=False).svg_data_uri(
        scale=6, dark="#000", light="#fff", border=4
    )
    return f'<img alt="QR code of the link for your class" src="{html.escape(drawn)}">'
