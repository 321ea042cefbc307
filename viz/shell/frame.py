"""What stands around every page: its settings, the menu, the heading.

`app.py` draws it, so that it stays where it is while the page inside is changed for another: the menu keeps
its place and the keyboard its link. A page that runs by itself draws it too.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from viz.notation.markdown import plain
from viz.shell.streamlit_patches import mend_streamlit
from viz.state import navigation
from viz.state.menu import HOME, PAGES, entry
from viz.state.session import adopt_link
from viz.tour import card as tour

if TYPE_CHECKING:
    from streamlit.navigation.page import Page

_DRAWN = "frame-drawn"  # session state: the page that is about to run has its frame
STYLE = Path(__file__).with_name("style.css")


def open_app() -> "Page":
    """The frame of the page that the address names, and that page, to be run."""
    mend_streamlit()
    pages = {
        page.file: st.Page(page.file, title=page.title, default=page.file == HOME) for page in PAGES
    }
    opened = st.navigation(list(pages.values()), position="hidden")
    _frame(next(file for file, page in pages.items() if page is opened))
    st.session_state[_DRAWN] = True
    return opened


def open_page(file: str) -> None:
    """The first call of every page: its frame, where `app.py` has not drawn it.

    Raises KeyError if the menu does not list the file.
    """
    if not st.session_state.pop(_DRAWN, False):
        mend_streamlit()
        _frame(file)


def _frame(file: str) -> None:
    page = entry(file)
    st.set_page_config(page_title=f"{page.title} · Attention visualizer", layout="wide")
    notes = adopt_link(file)
    tour.open_page(file)
    with st.sidebar:
        navigation.menu()
        tour.invitation("menu", quiet=True)
    st.html(STYLE)
    heading, path = st.columns([3, 2], vertical_alignment="bottom")
    with heading:
        st.title(page.heading or page.title, anchor=False)
        st.caption(page.line)
    with path:
        navigation.path(file)
    with st.container():  # one place, whether there is something to say or not
        for note in notes:
            st.warning(plain(note))
        tour.elsewhere()
