"""The menu, the way from page to page, and links between them."""

import html
from collections.abc import Iterable, Mapping
from copy import copy
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

import streamlit as st
from streamlit.errors import StreamlitPageNotFoundError
from streamlit.navigation.page import Page as StreamlitPage
from streamlit.runtime.scriptrunner import get_script_run_ctx

from viz.state.link import address, opening_link
from viz.state.menu import HOME, MENU, PAGES, entry
from viz.state.view import View

_PAGES = "pages-of-the-app"  # session state: all pages, where the app around this one has them
THIS_VIEW: Mapping[str, str] = MappingProxyType({})  # a link that says nothing of the view keeps it


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
    """All pages, in their groups; viz/shell/keys marks the open one."""
    groups = "".join(
        (f"<p>{group}</p>" if group else "")
        + "".join(html_link(page.file, page.title) for page in pages)
        for group, pages in MENU.items()
    )
    st.html(f'<nav class="menu" aria-label="Pages">{groups}</nav>')


def path(file: str) -> None:
    """At the foot: links to the page before and the page after this one."""
    here = PAGES.index(entry(file))
    before = (html_link(page.file, f"← {page.title}") for page in PAGES[:here][-1:])
    after = (html_link(page.file, f"{page.title} →") for page in PAGES[here + 1 :][:1])
    with st.container(key="path"):
        st.html(f'<nav aria-label="The way on">{_place(before)}{_place(after)}</nav>')


def _place(links: Iterable[str]) -> str:
    return f"<span>{''.join(links)}</span>"


def page_link(file: str, label: str, *, help: str | None = None, **parameters: str) -> None:
    """A link to a page; its name alone where a page is run by itself and knows no other."""
    try:
        page = st.session_state.get(_PAGES, {}).get(file, file)
        st.page_link(page, label=label, help=help, query_params=parameters or None)
    except StreamlitPageNotFoundError:
        st.caption(label)


def has_others() -> bool:
    """Whether the app around this page has the others: a page that runs by itself leads nowhere."""
    return _PAGES in st.session_state


def html_link(file: str, words: str, parameters: Mapping[str, str] = THIS_VIEW) -> str:
    """An HTML link to a page; its words alone where a page runs by itself."""
    leads = leading_to(file, parameters) if has_others() else ""
    return f"<a {leads}>{html.escape(words)}</a>"


def leading_to(file: str, parameters: Mapping[str, str] = THIS_VIEW) -> str:
    """The attributes of an HTML link to a page, which viz/shell/keys follows within the app."""
    link = html.escape(address(f"/{entry(file).address}", parameters))
    return f'href="{link}" data-page'


def view_link(file: str, label: str, view: View) -> None:
    """A link to a page that opens a view there."""
    page_link(file, label, **opening_link(view))
