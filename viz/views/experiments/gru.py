"""A recurrent network beside attention: both learned from the same rows, with as many parameters."""

from functools import partial

import pandas as pd
import streamlit as st

from model.training.recurrent import Comparison, compare
from viz.figures.diagrams import paths_and_gradients
from viz.notation.labels import numbered_labels
from viz.notation.words import sentences_of
from viz.shell.panel import Caption, Check, Columns, Formula, Panel, Table, refusals
from viz.shell.pictures import without_sentence
from viz.state.engine import engine
from viz.views.training.choice import LIST, text_box

say = sentences_of("experiments.gru")

RECURRENT = "training-recurrent"
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


def gru() -> Panel:
    """Path, gradient and accuracy of a GRU and of attention."""
    without_sentence()
    text = text_box(f"{RECURRENT}-text", LIST, listed=True)
    with refusals(), engine().turn():
        both = compare(text)
    count = len(both.tokens)
    start = stop = 0
    if count > 1:
        start, stop = st.slider(
            "Two tokens", 0, count - 1, (0, count - 1), key=f"{RECURRENT}-ends", width=280
        )
    apart = stop - start
    gradients = {each.network.name: each.gradient for each in both.both}
    labels = [token.text for token in both.tokens]
    unread = say("first_tokens_read", count=count, unread=both.unread)
    largest = " and at ".join(
        f"token {place}, {labels[place]} ({each.network.name})"
        for each in both.both
        for place in (int(each.gradient.argmax()),)
    )
    return Panel(
        f"{RECURRENT}-picture",
        look_for=say("first_chosen_token", apart=apart, apart_2=min(apart, 1), largest=largest),
        picture=paths_and_gradients(labels, start, stop, gradients),
        beside=[
            _prediction(both),
            partial(st.table, _compared_networks(both, apart)),
            Formula(GRADIENT),
            *([Caption(unread)] if both.unread else []),
        ],
        below=[
            Caption(say("gru_recurrent_network", count=count)),
            Columns([Panel(name, below=list(map(Formula, lines))) for name, lines in GRU.items()]),
        ],
        check=Check(
            say("check_states_gru", difference=both.difference),
            both.difference,
        ),
        table=Table(
            {"token": numbered_labels(labels)}
            | {f"gradient, {name}": lengths for name, lengths in gradients.items()}
        ),
    )


def _prediction(both: Comparison) -> str:
    """Who predicts more, first on the reader's list, then on fresh ones."""
    attention, gru = both.both
    fresh = " against ".join(f"{each.network.repeat_accuracy:.0%}" for each in both.both)
    right = say("list_pair_tokens")
    if both.scored:
        right = say(
            "list_attention_predicts",
            right=attention.right,
            scored=both.scored,
            gru_right=gru.right,
        )
    return say("fresh_lists_repeated", right=right, fresh=fresh)


def _compared_networks(both: Comparison, apart: int) -> pd.DataFrame:
    layers = {"attention": say("2_layers_once"), "GRU": f"{len(both.tokens)} states in turn"}
    path = {"attention": min(apart, 1), "GRU": apart}
    columns = {
        each.network.name: {
            "parameters": f"{each.network.parameters:,}",
            "computed in": layers[each.network.name],
            say("steps_between"): str(path[each.network.name]),
            say("right_fresh_repeated"): f"{each.network.repeat_accuracy:.1%}",
            say("right_list"): f"{each.right} of {both.scored}",
        }
        for each in both.both
    }
    return pd.DataFrame(columns)
