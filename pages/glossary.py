"""Glossary: each term in one sentence, with a small picture and the page where it is used."""

import html

import streamlit as st

from viz.notation.markdown import plain
from viz.shell import page
from viz.state import url
from viz.state.navigation import entry, html_link
from viz.views.glossary.glossary import TERMS, Term, by_letter, matching, term
from viz.views.glossary.miniatures import STYLE, picture
from viz.views.worked.by_hand import WORKED_PAGE, worked_example


def listed(found: Term) -> str:
    """HTML of a term: its picture, its names, its sentence, and where to see it."""
    also = f" ({html.escape(', '.join(found.also))})" if found.also else ""
    name, meaning = html.escape(found.name), html.escape(found.meaning)
    links = []
    if found.page != WORKED_PAGE:
        links.append(html_link(found.page, f"{entry(found.page).title} →", {}))
    if found.example:
        words = f"By hand: {worked_example(found.example).title} →"
        links.append(html_link(WORKED_PAGE, words, {"example": found.example}))
    return (
        f'<div class="term"><div class="picture">{picture(found)}</div>'
        f'<p><b>{name}</b>{also}<br>{meaning}</p><p class="leads">{"<br>".join(links)}</p></div>'
    )


def linked() -> None:
    """The term of the link, above all others."""
    name = url.read({"term"}).get("term")
    if name is None:
        return
    try:
        found = term(name)
    except KeyError:
        st.warning(
            plain(f"The glossary has no term “{name[:60]}”. All its terms are listed below.")
        )
        return
    with st.container(border=True, key="glossary-linked"):
        st.html(listed(found))


@st.fragment
def search() -> None:
    """A box to search with, and the terms it finds under their letters; all of them before that."""
    words = st.text_input(
        "Search",
        placeholder="A term, or a word from its explanation",
        type="search",
        live="250ms",
        max_chars=100,
        key="glossary-search",
    )
    if words.strip():
        found = matching(words)
        if found:
            st.caption(f"{len(found)} of {len(TERMS)} terms")
            st.html("".join(map(listed, found)))
        else:
            st.caption("No term contains these words.")
        return
    letters = by_letter(TERMS)
    jumps = " ".join(f'<a href="#letter-{letter}">{letter}</a>' for letter in letters)
    st.html(f'<nav class="letters" aria-label="Letters">{jumps}</nav>')
    for letter, terms in letters.items():
        head = f'<h2 class="letter" id="letter-{letter}">{letter}</h2>'
        st.html(head + "".join(map(listed, terms)))


page.open_page("pages/glossary.py")
st.html(STYLE)
linked()
search()
