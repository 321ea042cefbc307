"""Writing: token by token, with what is kept of those before."""

import streamlit as st

from viz.shell import page
from viz.shell.model_picker import LANGUAGE_MODELS, say_encoder
from viz.shell.panel import PanelView
from viz.views.prediction.cache import growing_cache, shorter_cache
from viz.views.prediction.next_token import SOFTMAX
from viz.views.prediction.writing import token_by_token
from viz.views.worked.by_hand import by_hand

page.open_page("pages/writing.py")
look = page.look(offers=LANGUAGE_MODELS)

VIEWS: dict[str, PanelView] = {
    "Token by token": token_by_token,
    "KV cache": growing_cache,
    "A shorter cache": shorter_cache,
}

OPENING = (
    "The chosen token is added to the text, and the model reads the longer text: that is how it "
    "writes. It keeps the **keys and values** of earlier tokens, so each step computes one token."
)


def idea() -> None:
    st.markdown(OPENING)
    st.latex(SOFTMAX)


def live() -> None:
    if not look.model.runs:
        look.model.require("logits")
    if look.trace.prediction is None:
        say_encoder(look, "reads a text and writes none. Choose a GPT to see it write.")
        return
    page.views(VIEWS, look)


page.beats(
    opening=OPENING,
    idea=idea,
    hand=lambda: by_hand("sequence-in-three-steps", "beam-beside-greedy"),
    live=live,
)
