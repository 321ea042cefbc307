"""Cost: how large vectors and tables are, in parameters, memory, operations and time, and how each grows."""

import streamlit as st

from viz.shell import page
from viz.views.cost.formulas import GROWTH, attention_shapes
from viz.views.cost.views import cost_view
from viz.views.glossary.glossary import glossary_link
from viz.views.worked.by_hand import by_hand

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
    st.markdown(
        f"""
Every operation gives a tensor of a certain shape. In attention a text of n
{glossary_link("token", "tokens")} is projected, cut into h {glossary_link("head", "heads")} of width
dₖ, turned into an n × n table of {glossary_link("score", "scores")} for each head, and brought back to
its original shape.

So there are three kinds of cost. The **parameters** are the same however long the text is. The
**operations** on single tokens grow with n. The tables of pairs grow with **n²**, in operations and in
{glossary_link("explicit pass", "memory")}; a {glossary_link("fused kernel")} never keeps them in memory.

A model that generates text keeps the keys and values it has computed: the
{glossary_link("KV cache")}. It grows with n too.
"""
    )
    st.latex(attention_shapes(config, "self"))
    if config.groups_keys:
        st.caption("In this model g heads of keys and values serve h heads of queries.")
    st.latex(GROWTH)


def live() -> None:
    look.model.require("sizes")
    page.views({"Cost": cost_view}, look)


page.beats(
    opening="How large the arrays are, what they cost, and how both grow with the text.",
    idea=idea,
    hand=lambda: by_hand(*EXAMPLES),
    live=live,
)
