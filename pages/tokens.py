"""Tokens: from letters to pieces and their ids."""

import streamlit as st

from viz.shell import page
from viz.shell.panel import PanelView
from viz.views.tokens.chat import as_a_chat
from viz.views.tokens.listing import token_list, two_tokenizers, word_steps
from viz.views.worked.by_hand import by_hand

page.open_page("pages/tokens.py")
look = page.look()

VIEWS: dict[str, PanelView] = {
    "Tokens": token_list,
    "Step by step": word_steps,
    "Two tokenizers": two_tokenizers,
    "As a chat": as_a_chat,
}

OPENING = (
    "A model reads numbers, not letters: a **tokenizer** cuts the text into **tokens**, each with "
    "an id. The **embedding** gives each id a vector, which attention then mixes with those of "
    "other tokens."
)


def idea() -> None:
    st.markdown(
        """
A model reads numbers, not letters. A **tokenizer** cuts the text into **tokens**, pieces from a fixed
list, the **vocabulary**. Each token has an **id**: its place in that list.

The **embedding** gives each id a vector: a row of a table that the model has learned. Looking up a row
is the same as multiplying a **one-hot** vector (all zeros except for a single 1) by the whole table.

This vector is **fixed**: a word has the same one in every sentence. Attention then mixes in the other
tokens, so after a layer or two the same word has different vectors in different sentences:
**contextual** ones.

A GPT is trained on **windows** of text. Its **targets** are the same windows shifted by one token, so
every position learns to predict the next token. The **stride** is the step from one window to the next.
"""
    )


page.beats(
    opening=OPENING,
    idea=idea,
    hand=lambda: by_hand("look-up-is-one-hot", "sliding-windows", "same-word-two-sentences"),
    live=lambda: page.views(VIEWS, look),
)
