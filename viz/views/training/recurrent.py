"""A recurrent network beside attention, on the reader's own list."""

from functools import partial

import pandas as pd
import streamlit as st

from model.training.recurrent import Comparison, compare
from viz.figures.diagrams import paths_and_gradients
from viz.notation.labels import numbered_labels
from viz.notation.markdown import plain
from viz.notation.numbers import difference
from viz.shell.frame import frame
from viz.shell.panel import Caption, Columns, Formula, Panel, Table
from viz.state.engine import engine
from viz.views.training.choice import HERE, LIST, text_box

KEY = "training-recurrent"
GRU = {
    "gates": (
        r"r_t = \sigma(W_{ir} x_t + b_{ir} + W_{hr} h_{t-1} + b_{hr})",
        r"z_t = \sigma(W_{iz} x_t + b_{iz} + W_{hz} h_{t-1} + b_{hz})",
    ),
    "states": (
        r"n_t = \tanh(W_{in} x_t + b_{in} + r_t \odot (W_{hn} h_{t-1} + b_{hn}))",
        r"h_t = (1 - z_t) \odot n_t + z_t \odot h_{t-1}",
    ),
}
GRADIENT = r"g_i = \left\lVert \frac{\partial\, \text{logits}_n}{\partial\, x_i} \right\rVert"


def beside_recurrent() -> Panel:
    """Path, gradient and accuracy of a GRU and of attention."""
    frame().follow_model(HERE)
    text = text_box(f"{KEY}-text", LIST, listed=True)
    try:
        with engine().turn(lambda place: None):
            both = compare(text)
    except ValueError as refusal:
        return Panel(f"{KEY}-picture", picture=partial(st.error, plain(str(refusal))))
    count = len(both.tokens)
    start = stop = 0
    if count > 1:
        start, stop = st.slider(
            "Two tokens, by position", 0, count - 1, (0, count - 1), key=f"{KEY}-ends"
        )
    apart = stop - start
    gradients = {each.network.name: each.gradient for each in both.both}
    labels = [token.text for token in both.tokens]
    unread = f"The first {count:,} tokens are read; {both.unread:,} more are left out."
    largest = " and at ".join(
        f"token {place}, {labels[place]} ({each.network.name})"
        for each in both.both
        for place in (int(each.gradient.argmax()),)
    )
    picture = Panel(
        f"{KEY}-picture",
        look_for="A GRU is a recurrent network: it reads one token after the other, and one vector keeps "
        f"what it has read. It computes {count} states in turn, one for each token; attention computes all "
        f"{count} tokens of a layer at once. From the first chosen token to the second the GRU takes "
        f"{apart} of its steps, attention {min(apart, 1)}. The gradient of the last output is largest at "
        f"{plain(largest)}; its scale is logarithmic. Tokens are counted from 0.",
        picture=paths_and_gradients(labels, start, stop, gradients),
        below=[
            *([partial(st.warning, unread)] if both.unread else []),
            partial(st.table, _table(both, apart)),
            Caption(
                "On your list a token is scored where the same pair of tokens stood earlier. On fresh lists: "
                "16 random symbols, repeated once; measured on the shipped weights."
            ),
            Caption("The state of the GRU, step by step, and the gradient that is drawn"),
            Columns([Panel(name, below=list(map(Formula, lines))) for name, lines in GRU.items()]),
            Formula(GRADIENT),
        ],
        check="Check: the states of the GRU, computed with this formula one step after the other, differ "
        f"from PyTorch's by at most {difference(both.difference)}. Both networks learned from the same rows.",
        table=Table(
            {"token": numbered_labels(labels)}
            | {f"gradient, {name}": lengths for name, lengths in gradients.items()}
        ),
    )
    return Panel(KEY, below=[_result(both), picture])


def _result(both: Comparison) -> str:
    """Who predicts more, first on the reader's list, then on fresh ones."""
    attention, gru = both.both
    fresh = " against ".join(f"{each.network.repeat_accuracy:.0%}" for each in both.both)
    right = "On your list no pair of tokens is repeated, so there is nothing to predict"
    if both.scored:
        right = (
            f"On your list attention predicts {attention.right} of {both.scored} tokens that can be copied, "
            f"the GRU {gru.right} of {both.scored}"
        )
    return f"**{right}; on fresh lists, each repeated once, {fresh}.**"


def _table(both: Comparison, apart: int) -> pd.DataFrame:
    layers = {"attention": "2 layers, each at once", "GRU": f"{len(both.tokens)} states in turn"}
    path = {"attention": min(apart, 1), "GRU": apart}
    columns = {
        each.network.name: {
            "parameters": f"{each.network.parameters:,}",
            "computed in": layers[each.network.name],
            "steps between the two": str(path[each.network.name]),
            "right on fresh repeated lists": f"{each.network.repeat_accuracy:.1%}",
            "right on your list": f"{each.right} of {both.scored}",
        }
        for each in both.both
    }
    return pd.DataFrame(columns)
