"""Prediction: logits, softmax, temperature, top-k, top-p, the logit lens, and token by token."""

import streamlit as st

from viz import shell
from viz.by_hand import by_hand_of
from viz.logit_lens import logit_lens
from viz.markdown import plain
from viz.next_token import next_token
from viz.prediction_formulas import ENTROPY, SOFTMAX
from viz.token_by_token import token_by_token

shell.open_page("pages/prediction.py")
seen = shell.look(layers=False)

VIEWS = {
    "The next token": next_token,
    "Layer by layer": logit_lens,
    "Token by token": token_by_token,
}


def idea() -> None:
    words, formula = st.columns([3, 2], gap="large")
    words.markdown(
        """
The last state of each token is multiplied by the output matrix. That gives one number for every
token of the vocabulary: a **logit**. The softmax turns the logits into **probabilities**, which sum
to 1 over the whole vocabulary. They say what the model expects next after that token.

- **Temperature** divides the logits first. Below 1 the likely tokens gain, above 1 the unlikely ones.
- **Top-k** keeps the k likeliest tokens. The others are cut, and those that stay share everything.
- **Top-p** keeps the fewest likely tokens that together hold the share p.
- **Greedy decoding** takes the likeliest token. **Sampling** draws one by chance.

The chosen token joins the text, and the model reads it all again: that is how a text is written.
The **entropy** says how undecided the model is: 0 for one certain token, ln n for n equal ones.

The **logit lens** asks earlier: what would each state predict, were it the last one?
"""
    )
    formula.latex(SOFTMAX)
    formula.latex(ENTROPY)


def live() -> None:
    if seen.trace.logits is None:
        st.info(
            plain(
                f"{seen.model.name} is an encoder: it reads a text and predicts no next token. "
                "A GPT such as stories does."
            )
        )
        shell.offer_model("stories")
        return
    view = st.segmented_control(
        "Show",
        list(VIEWS),
        default=next(iter(VIEWS)),
        required=True,
        key="prediction-view",
        bind="query-params",
        label_visibility="collapsed",
    )
    VIEWS[view](seen)


def hand() -> None:
    by_hand_of(("most-probable-word", "to-the-vocabulary", "sequence-in-three-steps"))


shell.beats(idea=idea, hand=hand, live=live)
