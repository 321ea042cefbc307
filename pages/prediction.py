"""Prediction: logits, softmax, temperature, top-k, top-p, the logit lens, token by token, the KV cache."""

import streamlit as st

from viz.shell import page
from viz.shell.model_picker import LANGUAGE_MODELS, say_encoder
from viz.shell.panel import PanelView
from viz.tour.card import beside_questions
from viz.views.glossary.glossary import glossary_link
from viz.views.prediction.next_token import ENTROPY, SOFTMAX, next_token
from viz.views.prediction.relevance import relevance
from viz.views.worked.by_hand import by_hand

page.open_page("pages/prediction.py")
look = page.look(offers=LANGUAGE_MODELS)

VIEWS: dict[str, PanelView] = {
    "The next token": next_token,
    "Which tokens made it?": relevance,
}

OPENING = (
    "The last state of each token is multiplied by the output matrix, which gives a **logit** for "
    "every token of the vocabulary. The **softmax** turns the logits into probabilities, and one "
    "token is chosen and added to the text."
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
- **{glossary_link("Greedy decoding")}** takes the most likely token. **Sampling** draws one at random.

The chosen token is added to the text, and the model reads the longer text: that is how it writes. It
keeps the keys and values of earlier tokens (the {glossary_link("KV cache")}), so that each step computes
only the new token. The **{glossary_link("entropy")}** says how undecided the
model is: 0 for one certain token, ln n for n equally likely ones.

The **{glossary_link("logit lens")}** asks what each earlier state would predict if it were the last.
"""
    )
    formula.latex(SOFTMAX)
    formula.latex(ENTROPY)
    if look.trace.prediction is None:
        formula.caption(
            "This model is an encoder: it has no output matrix and predicts no next token."
        )


def live() -> None:
    if not look.model.runs:
        look.model.require("logits")
    if look.trace.prediction is None:
        reads = "reads a text and predicts no next token"
        say_encoder(look, f"{reads}. Choose a GPT to see a prediction.")
        return
    beside_questions("prediction", look, lambda: page.views(VIEWS, look))


page.beats(
    opening=OPENING,
    idea=idea,
    hand=lambda: by_hand(
        "most-probable-word", "to-the-vocabulary", "sequence-in-three-steps", "beam-beside-greedy"
    ),
    live=live,
)
