"""Glossary: each term in one sentence, with the page where it is used."""

import streamlit as st

from viz.elements.one_of import one_of
from viz.notation.markdown import plain
from viz.shell import page
from viz.state import url
from viz.state.menu import entry
from viz.state.navigation import page_link
from viz.views.glossary.glossary import TERMS, Term, matching, sections, term
from viz.views.worked.by_hand import WORKED_PAGE, worked_example


def one(entry_: Term) -> None:
    """A term: its names, its sentence, and where to see it."""
    also = f" ({plain(', '.join(entry_.also))})" if entry_.also else ""
    meaning, links = st.columns([3, 2], vertical_alignment="top")
    meaning.markdown(f"**{plain(entry_.name)}**{also}  \n{plain(entry_.meaning)}")
    with links:
        if entry_.page != WORKED_PAGE:
            page_link(entry_.page, f"{entry(entry_.page).title} →")
        if entry_.example:
            title = worked_example(entry_.example).title
            page_link(WORKED_PAGE, f"By hand: {plain(title)} →", example=entry_.example)


def linked() -> None:
    """The term of the link, above all others."""
    name = url.read({"term"}).get("term")
    if name is None:
        return
    try:
        found = term(name)
    except KeyError:
        st.warning(plain(f"The glossary has no term “{name[:60]}”. All it has stands below."))
        return
    with st.container(border=True, key="glossary-linked"):
        one(found)


@st.fragment
def search() -> None:
    """A box to search with and the terms it finds; before that, one part of the alphabet."""
    words = st.text_input(
        "Search",
        placeholder="A term, or a word of its meaning",
        type="search",
        live="250ms",
        max_chars=100,
        key="glossary-search",
    )
    found = matching(words) if words.strip() else _section()
    st.caption(f"{len(found)} of {len(TERMS)} terms" if found else "No term holds these words.")
    for entry_ in found:
        one(entry_)


def _section() -> tuple[Term, ...]:
    parts = sections()
    chosen = one_of("Letters", list(parts), "glossary-letters", quiet=True)
    return parts[chosen]


page.open_page("pages/glossary.py")
linked()
search()
