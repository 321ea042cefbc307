"""Feed-forward: the neurons of a layer, the curve that they pass, and experts."""

import streamlit as st

from viz.shell import page
from viz.shell.panel import PanelView
from viz.views.feed_forward.neurons import EXPERTS, experts, neurons, on_the_curve
from viz.views.worked.by_hand import by_hand

page.open_page("pages/feed_forward.py")
look = page.look(full=True)

VIEWS: dict[str, PanelView] = {}
if look.trace.experts:
    VIEWS[EXPERTS] = experts
if not look.trace.experts or look.trace.feed_forward:
    VIEWS |= {"Neurons": neurons, "On the curve": on_the_curve}

OPENING = (
    "After attention has mixed the tokens, the **feed-forward** layer works on each token alone: wider, "
    "through a curve, and back."
)


def idea() -> None:
    config = look.model.config
    st.markdown(
        "A first map makes the vector wider, usually four times. The **activation** is a curve that is "
        "applied to every number. A second map brings the vector back to its width. A gated layer "
        "multiplies the curve of one map by the numbers of another."
    )
    if config.experts:
        st.caption(
            f"In this model {config.experts} such layers, the **experts**, stand side by side in a "
            "feed-forward: a router sends each token to a few of them."
        )


page.beats(
    opening=OPENING,
    idea=idea,
    hand=lambda: by_hand(
        "gelu",
        "gelu-minimum",
        "relu-and-gelu",
        "swiglu",
        "feed-forward-position-wise",
        "how-wide-inside",
    ),
    live=lambda: page.views(VIEWS, look),
)
