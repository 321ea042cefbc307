"""Layer norm: each token's vector moved to mean 0 and variance 1, then scaled and shifted."""

import streamlit as st

from viz.notation.words import sentences_of
from viz.shell import page
from viz.views.norms.views import this_norm
from viz.views.worked.by_hand import by_hand

say = sentences_of("page.layer_norm")

page.open_page("pages/layer_norm.py")
seen = page.look(full=True)

OPENING = say("sub_layer_after")


def idea() -> None:
    st.markdown(seen.model.config.norm_law.idea or say("layer_norm_subtracts"))


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
