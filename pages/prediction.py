"""Next token: logits, softmax, temperature, top-k, top-p; and which tokens made a logit."""

import streamlit as st

from viz.notation.words import sentences_of
from viz.shell import page
from viz.shell.model_picker import LANGUAGE_MODELS
from viz.shell.panel import PanelView
from viz.state.look import Look
from viz.tour.card import beside_questions
from viz.views.glossary.glossary import with_terms
from viz.views.prediction.encoder import read_by_a_gpt
from viz.views.prediction.next_token import ENTROPY, SOFTMAX, next_token
from viz.views.prediction.relevance import relevance, tells_relevance
from viz.views.worked.by_hand import by_hand

say = sentences_of("page.prediction")
name = sentences_of("state.navigation")  # of a view

page.open_page("pages/prediction.py")
look = page.look(offers=LANGUAGE_MODELS)

OPENING = say("last_state_token")


def idea() -> None:
    words, formula = st.columns([3, 2], gap="large")
    normed = ", normed once more," if not look.model.config.norms_sum else ""
    words.markdown(with_terms(say("last_state_token_term", normed=normed)))
    formula.latex(SOFTMAX)
    formula.latex(ENTROPY)


def live() -> None:
    if not look.model.runs:
        look.model.require("logits")
    shown: Look | None = look
    if look.trace.prediction is None:
        shown = read_by_a_gpt(look, say("predicts_next_token"))
    if shown is None:
        return
    views: dict[str, PanelView] = {"The next token": lambda _: next_token(shown)}
    if tells_relevance(shown):
        views[name("tokens_made")] = lambda _: relevance(shown)
    beside_questions("prediction", shown, lambda: page.views(views, look))


page.beats(
    opening=OPENING,
    idea=idea,
    hand=lambda: by_hand("most-probable-word", "to-the-vocabulary"),
    live=live,
)
