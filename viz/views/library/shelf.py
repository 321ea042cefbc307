"""The Library as a list that is searched: a box, and below it the entries under their headings."""

import html
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import streamlit as st

from viz.elements.error_boundary import error_boundary
from viz.notation.words import sentences_of
from viz.shell.panel import Panel
from viz.state import url
from viz.state.look import is_loaded
from viz.state.session import current
from viz.views.library.entries import (
    LibraryEntry,
    LibraryKind,
    example_entry,
    found_in,
    listed,
    matching,
    term_entry,
)

say = sentences_of("library.shelf")

TERM, EXAMPLE = "term", "example"  # parameters of a link that opens the list at an entry
SEARCH = "library-search"
STYLE = Path(__file__).with_name("library.css")
_ENTRY = {TERM: term_entry, EXAMPLE: example_entry}


def shelf(kind: LibraryKind | None) -> Panel:
    """The search box, and the entries of one kind, or all of them."""
    words = st.text_input(
        "Search the Library",
        placeholder=say("search_question_term"),
        type="search",
        live="250ms",
        max_chars=100,
        key=SEARCH,
        label_visibility="collapsed",
        width=360,
    )
    model = current().model
    found: Sequence[LibraryEntry] = ()
    if is_loaded(model):
        with error_boundary():
            found = found_in(model)
    entries = [one for one in (*found, *listed(model)) if kind in (None, one.kind)]
    if words.strip():
        return Panel("library", picture=partial(_draw_matching, entries, words))
    return Panel("library", picture=partial(_draw_all, entries))


def _draw_matching(entries: Sequence[LibraryEntry], words: str) -> None:
    st.html(STYLE)
    shown = matching(entries, words)
    st.caption(f"{len(shown)} of {len(entries)}" if shown else say("nothing_words_ctrl"))
    st.html(_grid(shown))


def _draw_all(entries: Sequence[LibraryEntry]) -> None:
    st.html(STYLE)
    # The entry that the link names, above all others.
    for parameter, name in url.read({TERM, EXAMPLE}).items():
        try:
            linked = _ENTRY[parameter](name)
        except KeyError:
            st.html(
                f'<p class="absent">The Library has no {parameter} “{html.escape(name[:60])}”. All that it '
                "has is listed below.</p>"
            )
        else:
            st.html(f'<div class="linked">{linked.html()}</div>')
    groups = [(name, list(group)) for name, group in groupby(entries, attrgetter("group"))]
    has_topics = any(one.kind != "Examples" for one in entries)  # other models' examples stand last
    jumps = " ".join(
        f'<a href="#group-{number}">{html.escape(name)}</a>'
        for number, (name, group) in enumerate(groups)
        if number == 0 or not has_topics or group[0].kind != "Examples"
    )
    st.html(f'<nav class="groups" aria-label="Topics">{jumps}</nav>')
    for number, (name, group) in enumerate(groups):
        st.html(f'<h2 class="group" id="group-{number}">{html.escape(name)}</h2>{_grid(group)}')


def _grid(entries: Sequence[LibraryEntry]) -> str:
    return f'<div class="entries">{"".join(one.html() for one in entries)}</div>'
