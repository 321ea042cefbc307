"""Cost: how large vectors and tables are, in parameters, memory, operations and time, and how each grows."""

import streamlit as st

from viz.notation.words import sentences_of
from viz.shell import page
from viz.views.cost.formulas import GROWTH, attention_shapes
from viz.views.cost.views import cost_view
from viz.views.glossary.glossary import with_terms
from viz.views.worked.by_hand import by_hand

say = sentences_of("page.shapes_and_cost")

page.open_page("pages/shapes_and_cost.py")
look = page.look(full=True)

EXAMPLES = (
    "shape-walk-c",
    "shape-walk-d",
    "one-matrix-then-split",
    "head-widths",
    "contiguous-before-merge",
    "projection-parameters",
    "memory-and-operations",
    "gpt-2-parameters",
    "words-and-tokens",
)


def idea() -> None:
    config = look.model.config
    st.markdown(with_terms(say("every_operation_gives")))
    st.latex(attention_shapes(config, "self"))
    if config.groups_keys:
        st.caption(say("model_g_heads_keys"))
    st.latex(GROWTH)


def live() -> None:
    look.model.require("sizes")
    page.views({"Cost": cost_view}, look)


page.beats(
    opening=say("large_arrays_cost"),
    idea=idea,
    hand=lambda: by_hand(*EXAMPLES),
    live=live,
)
