"""Tokens: from letters to pieces and their ids."""

import streamlit as st

from viz.shell import page
from viz.shell.panel import PanelView
from viz.views.tokens.chat import as_a_chat, has_template
from viz.views.tokens.listing import token_list, two_tokenizers
from viz.views.worked.by_hand import by_hand

page.open_page("pages/tokens.py")
look = page.look()

VIEWS: dict[str, PanelView] = {
    "Tokens": token_list,
    "Two tokenizers": two_tokenizers,
    **({"As a chat": as_a_chat} if has_template(look) else {}),
}

OPENING = (
    "A model reads numbers, not letters: a **tokenizer** cuts the text into **tokens**, each with an "
    "**id**."
)


def idea() -> None:
    st.markdown(
        """
A **tokenizer** cuts the text into **tokens**, pieces from a fixed list, the **vocabulary**. Each token has an
**id**: its place in that list.

**Byte pair encoding**, as in GPT-2, begins with single bytes and merges the pair of neighbours that was
learned first, again and again. **Word pieces**, as in BERT, take the longest piece that the vocabulary has.
"""
    )


page.beats(
    opening=OPENING,
    idea=idea,
    hand=lambda: by_hand("sliding-windows"),
    live=lambda: page.views(VIEWS, look),
)
