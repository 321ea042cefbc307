"""Library: questions of a reader by topic, each with the way to its answer; and the search for everything."""

import html
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import streamlit as st

from viz.shell import page
from viz.state.navigation import html_link
from viz.views import library
from viz.views.library.questions import ReaderQuestion, questions

page.open_page("pages/library.py")
st.html(Path(library.__file__).with_name("library.css"))


def entry(question: ReaderQuestion) -> str:
    """HTML of a question: its words, what to do, and where."""
    links = (
        html_link(link.page.file, f"{link.label} →", link.parameters) for link in question.opens()
    )
    return (
        f"<div><dt>{html.escape(question.words)}</dt><dd>{html.escape(question.answer)}"
        f'<span class="leads">{"".join(links)}</span></dd></div>'
    )


topics = [(topic, list(listed)) for topic, listed in groupby(questions(), attrgetter("topic"))]
jumps = " ".join(
    f'<a href="#topic-{number}">{html.escape(topic)}</a>'
    for number, (topic, _) in enumerate(topics)
)
st.html(
    '<button type="button" class="search-everything" data-search>Search pages, terms, questions, '
    "examples, models, heads and tokens <kbd>Ctrl K</kbd></button>"
    f'<nav class="topics" aria-label="Topics">{jumps}</nav>'
)
for number, (topic, listed) in enumerate(topics):
    st.html(
        f'<section class="questions"><h2 id="topic-{number}">{html.escape(topic)}</h2>'
        f"<dl>{''.join(map(entry, listed))}</dl></section>"
    )
