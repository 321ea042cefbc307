"""Layer norm: each token's vector moved to mean 0 and variance 1, then scaled and shifted."""

import streamlit as st

from model.nn.norms import NORMS
from viz.shell import page
from viz.views.norms.views import VIEWS
from viz.views.worked.by_hand import by_hand

page.open_page("pages/layer_norm.py")
seen = page.look(full=True)

OPENING = (
    "Sub-layer after sub-layer adds to a token's vector, so some vectors grow large and others "
    "stay small. A **layer norm** brings each one back to the same size, one token at a time."
)


def idea() -> None:
    words, formula = st.columns([3, 2], gap="large")
    words.markdown(
        """
Sub-layer after sub-layer adds to a token's vector, so some vectors grow large and others stay small.
A **layer norm** brings each one back to the same size. It works on one token at a time: it subtracts the
**mean** of the token's numbers and divides by their **standard deviation**.

Then each dimension is multiplied by its own **γ** and shifted by its own **β**. Both are learned, and
are the same for every token. The small **ε** inside the root keeps it from dividing by zero.

**Batch norm** normalizes each dimension over the samples of a batch, so the numbers of one sample depend
on the others, and on padding. Layer norm mixes neither samples nor tokens. Min–max scaling maps a known
range to 0 to 1 instead; it does not bring the mean to 0.

The norm stands after the residual sum (**post-norm**: the 2017 transformer, BERT) or before each
sub-layer (**pre-norm**: GPT-2, with one more norm at the end).
"""
    )
    formula.latex(NORMS["layer"].formula())
    law = seen.model.config.norm_law
    if law.idea:
        words.markdown(law.idea)
        formula.latex(law.formula())


page.beats(
    opening=OPENING,
    idea=idea,
    hand=lambda: by_hand(
        "layer-norm-by-hand",
        "biased-and-unbiased",
        "where-the-norm-stands",
        "houses",
        "pixels-min-max",
    ),
    live=lambda: page.views(VIEWS, seen),
)
