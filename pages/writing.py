"""Writing: token by token, and what is kept of the tokens before."""

import streamlit as st

from viz.notation.words import sentences_of
from viz.shell import page
from viz.shell.model_picker import LANGUAGE_MODELS
from viz.state.look import Look
from viz.views.glossary.glossary import with_terms
from viz.views.prediction.cache import kept_keys
from viz.views.prediction.encoder import read_by_a_gpt
from viz.views.prediction.writing import DRAWN, GREEDY, token_by_token
from viz.views.worked.by_hand import by_hand

say = sentences_of("page.writing")

page.open_page("pages/writing.py")
look = page.look(offers=LANGUAGE_MODELS)

OPENING = say("chosen_token_added")


def idea() -> None:
    words, formula = st.columns([3, 2], gap="large")
    words.markdown(with_terms(say("step_reads_text")))
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
