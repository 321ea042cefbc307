"""The menu, the way from page to page, and links between them."""

import html
from collections.abc import Mapping
from copy import copy
from functools import lru_cache
from pathlib import Path

import streamlit as st
from streamlit.errors import StreamlitPageNotFoundError
from streamlit.navigation.page import Page as StreamlitPage
from streamlit.runtime.scriptrunner import get_script_run_ctx

from viz.state.link import address, opening_link
from viz.state.menu import HOME, MENU, PAGES, entry
from viz.state.session import carried_link
from viz.state.view import View

_PAGES = "pages-of-the-app"  # session state: all pages, where the app around this one has them


def pages() -> dict[str, StreamlitPage]:
    """All pages by their files, for one run of the app, which marks the one that it opens."""
    context = get_script_run_ctx()
    folder = Path() if context is None else context.pages_manager.main_script_parent
    made = {file: copy(page) for file, page in _made_in(folder).items()}
    st.session_state[_PAGES] = made
    return made


@lru_cache(maxsize=4)
def _made_in(folder: Path) -> dict[str, StreamlitPage]:
    """The pages of the app in a folder. To make them Streamlit looks for the file of each."""
    return {
        page.file: st.Page(page.file, title=page.title, default=page.file == HOME) for page in PAGES
    }


def menu() -> None:
    """All pages, in their groups. Each link carries the view."""
    carried = carried_link()
    for group, pages in MENU.items():
        if group:
            st.caption(group)
        for page in pages:
            page_link(page.file, page.title, **carried)


def path(file: str) -> None:
    """At the foot: links to the page before and the page after this one."""
    files = [page.file for page in PAGES]
    here, carried = files.index(file), carried_link()
    with st.container(horizontal=True, horizontal_alignment="distribute", key="path"):
        for label, at in (("← {}", here - 1), ("{} →", here + 1)):
            with st.container(width="content"):  # a place each: the keyboard stays where it is
                if 0 <= at < len(PAGES):
                    page_link(PAGES[at].file, label.format(PAGES[at].title), **carried)


def page_link(file: str, label: str, *, help: str | None = None, **parameters: str) -> None:
    """A link to a page; its name alone where a page is run by itself and knows no other."""
    try:
        page = st.session_state.get(_PAGES, {}).get(file, file)
        st.page_link(page, label=label, help=help, query_params=parameters or None)
    except StreamlitPageNotFoundError:
        st.caption(label)


def leading_to(file: str, parameters: Mapping[str, str]) -> str:
    """The attributes of an HTML link to a page, which viz/shell/keys follows within the app."""
    link = html.escape(address(f"/{entry(file).address}", parameters))
    return f'href="{link}" data-page="{file}"'


def view_link(file: str, label: str, view: View) -> None:
    """A link to a page that opens a view there."""
    page_link(file, label, **opening_link(view))
