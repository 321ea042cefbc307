"""Layer norm: each token's vector moved to mean 0 and variance 1, then scaled and shifted."""

import streamlit as st

from viz.shell import page
from viz.views.norms.views import this_norm
from viz.views.worked.by_hand import by_hand

page.open_page("pages/layer_norm.py")
seen = page.look(full=True)

OPENING = (
    "Sub-layer after sub-layer adds to a token's vector, so some vectors grow large and others "
    "stay small. A **norm** brings each one back to the same size, one token at a time."
)


def idea() -> None:
    st.markdown(
        seen.model.config.norm_law.idea
        or """
A **layer norm** subtracts the **mean** of a token's numbers and divides by their **standard deviation**. Then
each dimension is multiplied by its own **γ** and shifted by its own **β**: both are learned, and the same for
every token. The small **ε** inside the root keeps it from dividing by zero.
"""
    )


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
    live=lambda: page.views({"This norm": this_norm}, seen),
)
