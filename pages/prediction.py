"""Next token: logits, softmax, temperature, top-k, top-p; and which tokens made a logit."""

import streamlit as st

from viz.shell import page
from viz.shell.model_picker import LANGUAGE_MODELS
from viz.shell.panel import PanelView
from viz.state.look import Look
from viz.tour.card import beside_questions
from viz.views.glossary.glossary import glossary_link
from viz.views.prediction.encoder import read_by_a_gpt
from viz.views.prediction.next_token import ENTROPY, SOFTMAX, next_token
from viz.views.prediction.relevance import relevance, tells_relevance
from viz.views.worked.by_hand import by_hand

page.open_page("pages/prediction.py")
look = page.look(offers=LANGUAGE_MODELS)

OPENING = (
    "The last state of each token is multiplied by the output matrix, which gives a **logit** for "
    "every token of the vocabulary. The **softmax** turns the logits into probabilities."
)


def idea() -> None:
    words, formula = st.columns([3, 2], gap="large")
    normed = ", normed once more," if not look.model.config.norms_sum else ""
    words.markdown(
        f"""
The last state of each {glossary_link("token")}{normed} is multiplied by the output matrix. That gives one
number for every token of the {glossary_link("vocabulary")}: a **{glossary_link("logit")}**. The
{glossary_link("softmax")} turns the logits into **{glossary_link("probability", "probabilities")}**,
which sum to 1 over the whole vocabulary. They say what the model expects next after that token.

- **{glossary_link("Temperature")}** divides the logits first. Below 1 the likely tokens gain, above
  1 the unlikely ones.
- **{glossary_link("Top-k")}** keeps the k most likely tokens and removes the others. The probabilities of
  those that remain are scaled up to sum to 1.
- **{glossary_link("Top-p")}** keeps the smallest set of most likely tokens whose probabilities reach p
  together.

The **{glossary_link("entropy")}** says how undecided the model is: 0 for one certain token, ln n for n
equally likely ones.
"""
    )
    formula.latex(SOFTMAX)
    formula.latex(ENTROPY)


def live() -> None:
    if not look.model.runs:
        look.model.require("logits")
    shown: Look | None = look
    if look.trace.prediction is None:
        shown = read_by_a_gpt(look, "predicts no next token")
    if shown is None:
        return
    views: dict[str, PanelView] = {"The next token": lambda _: next_token(shown)}
    if tells_relevance(shown):
        views["Which tokens made it?"] = lambda _: relevance(shown)
    beside_questions("prediction", shown, lambda: page.views(views, look))


page.beats(
    opening=OPENING,
    idea=idea,
    hand=lambda: by_hand("most-probable-word", "to-the-vocabulary"),
    live=live,
)
