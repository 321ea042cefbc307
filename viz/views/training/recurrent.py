"""A recurrent network beside attention, on the reader's own list."""

import pandas as pd
import streamlit as st

from model.training.recurrent import Comparison, compare
from viz.figures.diagrams import paths_and_gradients
from viz.notation.labels import numbered_labels
from viz.notation.markdown import plain
from viz.notation.numbers import difference
from viz.shell.frame import frame
from viz.shell.pictures import chart, look_for, table
from viz.state.engine import engine
from viz.views.training.choice import HERE, LIST, text_box

KEY = "training-recurrent"
GRU = (
    r"r_t = \sigma(W_{ir} x_t + b_{ir} + W_{hr} h_{t-1} + b_{hr})",
    r"z_t = \sigma(W_{iz} x_t + b_{iz} + W_{hz} h_{t-1} + b_{hz})",
    r"n_t = \tanh(W_{in} x_t + b_{in} + r_t \odot (W_{hn} h_{t-1} + b_{hn}))",
    r"h_t = (1 - z_t) \odot n_t + z_t \odot h_{t-1}",
)
GRADIENT = r"g_i = \left\lVert \frac{\partial\, \text{logits}_n}{\partial\, x_i} \right\rVert"


def beside_recurrent() -> None:
    """Path, gradient and accuracy of a GRU and of attention."""
    frame().follow_model(HERE)
    lead, picture, words = st.container(), st.container(), st.container()
    box, ends = st.columns(2, gap="large", vertical_alignment="bottom")
    with box:
        text = text_box(f"{KEY}-text", LIST, listed=True)
    try:
        with engine().turn(lambda place: None):
            found = compare(text)
    except ValueError as refusal:
        st.error(plain(str(refusal)))
        return
    count = len(found.tokens)
    start = stop = 0
    if count > 1:
        start, stop = ends.slider(
            "Two tokens, by position", 0, count - 1, (0, count - 1), key=f"{KEY}-ends"
        )
    lead.markdown(_result(found))
    with picture:
        gradients = {each.network.name: each.gradient for each in found.both}
        labels = [token.text for token in found.tokens]
        chart(paths_and_gradients(labels, start, stop, gradients), f"{KEY}-picture")
    with words:
        _say(found, stop - start)
    _table(found, stop - start)
    columns = {f"gradient, {name}": lengths for name, lengths in gradients.items()}
    table({"token": numbered_labels(labels), **columns}, f"{KEY}-gradients")
    st.caption("The state of the GRU, step by step, and the gradient that is drawn")
    for column, equations in zip(st.columns(2), (GRU[:2], GRU[2:]), strict=True):
        for equation in equations:
            column.latex(equation)
    st.latex(GRADIENT)
    st.caption(
        "Check: the states of the GRU, computed with this formula one step after the other, differ from "
        f"PyTorch's by at most {difference(found.difference)}. Both networks learned from the same rows."
    )


def _result(found: Comparison) -> str:
    """Who predicts more, first on the reader's list, then on fresh ones."""
    attention, gru = found.both
    fresh = " against ".join(f"{each.network.repeat_accuracy:.0%}" for each in found.both)
    right = "On your list no pair of tokens is repeated, so there is nothing to predict"
    if found.scored:
        right = (
            f"On your list attention predicts {attention.right} of {found.scored} tokens that can be copied, "
            f"the GRU {gru.right} of {found.scored}"
        )
    return f"**{right}; on fresh lists, each repeated once, {fresh}.**"


def _say(found: Comparison, apart: int) -> None:
    count = len(found.tokens)
    if found.unread:
        st.warning(f"The first {count:,} tokens are read; {found.unread:,} more are left out.")
    largest = " and at ".join(
        f"token {place}, {found.tokens[place].text} ({each.network.name})"
        for each in found.both
        for place in (int(each.gradient.argmax()),)
    )
    look_for(
        "A GRU is a recurrent network: it reads one token after the other, and one vector keeps what it "
        f"has read. It computes {count} states in turn, one for each token; attention computes all {count} "
        "tokens of a layer at once. From the first chosen token to the second the GRU takes "
        f"{apart} of its steps, attention {min(apart, 1)}. The gradient of the last output is largest at "
        f"{plain(largest)}; its scale is logarithmic. Tokens are counted from 0."
    )


def _table(found: Comparison, apart: int) -> None:
    layers = {"attention": "2 layers, each at once", "GRU": f"{len(found.tokens)} states in turn"}
    path = {"attention": min(apart, 1), "GRU": apart}
    columns = {
        each.network.name: {
            "parameters": f"{each.network.parameters:,}",
            "computed in": layers[each.network.name],
            "steps between the two": str(path[each.network.name]),
            "right on fresh repeated lists": f"{each.network.repeat_accuracy:.1%}",
            "right on your list": f"{each.right} of {found.scored}",
        }
        for each in found.both
    }
    st.table(pd.DataFrame(columns))
    st.caption(
        "On your list a token is scored where the same pair of tokens stood earlier. On fresh lists: "
        "16 random symbols, repeated once; measured on the shipped weights."
    )
