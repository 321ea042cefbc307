"""Feed-forward: the neurons of a layer, the curve that they pass, and experts."""

import streamlit as st

from viz.notation.words import sentences_of
from viz.shell import page
from viz.shell.panel import PanelView
from viz.views.feed_forward.neurons import EXPERTS, experts, neurons, on_the_curve
from viz.views.worked.by_hand import by_hand

say = sentences_of("page.feed_forward")

page.open_page("pages/feed_forward.py")
look = page.look(full=True)

VIEWS: dict[str, PanelView] = {}
if look.trace.experts:
    VIEWS[EXPERTS] = experts
if not look.trace.experts or look.trace.feed_forward:
    VIEWS |= {"Neurons": neurons, "On the curve": on_the_curve}

OPENING = say("after_attention_mixed")


def idea() -> None:
    config = look.model.config
    st.markdown(say("first_map_makes"))
    if config.experts:
        st.caption(say("model_such_layers", experts=config.experts))


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
