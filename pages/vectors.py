"""Vectors: the row of the embedding for each token, and what the sentence makes of it."""

import streamlit as st

from viz.shell import page
from viz.shell.panel import PanelView
from viz.views.tokens.vectors import nearest, two_sentences, vector_look_up
from viz.views.worked.by_hand import by_hand

page.open_page("pages/vectors.py")
look = page.look()

VIEWS: dict[str, PanelView] = {
    "Look-up": vector_look_up,
    "Nearest tokens": nearest,
    "Two sentences": two_sentences,
}

OPENING = (
    "Each token starts as one **vector**: a row of a table that the model has learned, its **embedding**. "
    "Attention then mixes in the other tokens."
)


def idea() -> None:
    st.markdown(
        """
The **embedding** gives each id a vector. Looking up its row is the same as multiplying a **one-hot** vector,
all zeros except for a single 1, by the whole table.

This vector is **fixed**: a word has the same one in every sentence. Attention mixes in the other tokens, so
after a layer or two the same word has different vectors in different sentences: **contextual** ones.
"""
    )


page.beats(
    opening=OPENING,
    idea=idea,
    hand=lambda: by_hand("look-up-is-one-hot", "same-word-two-sentences"),
    live=lambda: page.views(VIEWS, look),
)
