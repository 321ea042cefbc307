"""Residual stream: what each sub-layer adds to a token's vector, and what each state would predict."""

import streamlit as st

from viz.notation.words import sentences_of
from viz.shell import page
from viz.shell.panel import PanelView
from viz.views.feed_forward.formulas import RESIDUAL
from viz.views.feed_forward.stream import contributions_view, logit_lens
from viz.views.worked.by_hand import by_hand

say = sentences_of("page.stream")

page.open_page("pages/stream.py")
look = page.look(full=True)

# Without an output map no state predicts a token.
VIEWS: dict[str, PanelView] = {"Layer by layer": logit_lens, "Contributions": contributions_view}
if look.trace.prediction is None:
    del VIEWS["Layer by layer"]

OPENING = say("sub_layer_adds_output")


def idea() -> None:
    st.markdown(say("sub_layer_adds_output_token"))
    st.latex(RESIDUAL)


page.beats(
    opening=OPENING,
    idea=idea,
    hand=lambda: by_hand("residual-gradient"),
    live=lambda: page.views(VIEWS, look),
)
