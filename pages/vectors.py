"""Vectors: the row of the embedding for each token, and what the sentence makes of it."""

import streamlit as st

from viz.notation.words import sentences_of
from viz.shell import page
from viz.shell.panel import PanelView
from viz.views.tokens.vectors import nearest, two_sentences, vector_look_up
from viz.views.worked.by_hand import by_hand

say = sentences_of("page.vectors")

page.open_page("pages/vectors.py")
look = page.look()

VIEWS: dict[str, PanelView] = {
    "Look-up": vector_look_up,
    "Nearest tokens": nearest,
    "Two sentences": two_sentences,
}

OPENING = say("token_starts_vector")


def idea() -> None:
    st.markdown(say("embedding_gives_id"))


page.beats(
    opening=OPENING,
    idea=idea,
    hand=lambda: by_hand("look-up-is-one-hot", "same-word-two-sentences"),
    live=lambda: page.views(VIEWS, look),
)
