"""Writing: token by token, and what is kept of the tokens before."""

import streamlit as st

from viz.shell import page
from viz.shell.model_picker import LANGUAGE_MODELS
from viz.state.look import Look
from viz.views.glossary.glossary import glossary_link
from viz.views.prediction.cache import kept_keys
from viz.views.prediction.encoder import read_by_a_gpt
from viz.views.prediction.writing import DRAWN, GREEDY, token_by_token
from viz.views.worked.by_hand import by_hand

page.open_page("pages/writing.py")
look = page.look(offers=LANGUAGE_MODELS)

OPENING = (
    "The chosen token is added to the text, and the model reads the longer text: that is how it "
    "writes. It keeps the **keys and values** of earlier tokens, so each step computes one token."
)


def idea() -> None:
    words, formula = st.columns([3, 2], gap="large")
    words.markdown(
        f"""
Each step reads the text so far, gives every token of the vocabulary a probability, and adds one token.

- **{glossary_link("Greedy decoding")}** takes the most likely token. **Sampling** draws one at random, after
  {glossary_link("temperature")}, {glossary_link("top-k")} and {glossary_link("top-p")}.
- No token attends to a later one, so the keys and values of earlier tokens stay as they are: the
  **{glossary_link("KV cache")}** keeps them, and each step computes those of the new token alone.
- A cache of limited size drops old tokens. Many models then need the first tokens, on which their heads rest
  what they do not use.
"""
    )
    formula.latex(GREEDY)
    formula.latex(DRAWN)


def live() -> None:
    if not look.model.runs:
        look.model.require("logits")
    shown: Look | None = look
    if look.trace.prediction is None:
        shown = read_by_a_gpt(look, "writes none")
    if shown is not None:
        views = {
            "Token by token": lambda _: token_by_token(shown),
            "KV cache": lambda _: kept_keys(shown),
        }
        page.views(views, look)


page.beats(
    opening=OPENING,
    idea=idea,
    hand=lambda: by_hand("sequence-in-three-steps", "beam-beside-greedy"),
    live=live,
)
