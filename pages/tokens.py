"""Tokens: from letters to pieces and their ids."""

import streamlit as st

from viz.notation.words import sentences_of
from viz.shell import page
from viz.shell.panel import PanelView
from viz.views.tokens.chat import as_a_chat, has_template
from viz.views.tokens.listing import token_list, two_tokenizers
from viz.views.worked.by_hand import by_hand

say = sentences_of("page.tokens")

page.open_page("pages/tokens.py")
look = page.look()

VIEWS: dict[str, PanelView] = {
    "Tokens": token_list,
    "Two tokenizers": two_tokenizers,
    **({"As a chat": as_a_chat} if has_template(look) else {}),
}

OPENING = say("model_reads_numbers")


def idea() -> None:
    st.markdown(say("tokenizer_cuts_text"))


page.beats(
    opening=OPENING,
    idea=idea,
    hand=lambda: by_hand("sliding-windows"),
    live=lambda: page.views(VIEWS, look),
)
