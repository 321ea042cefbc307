"""The live neurons of a feed-forward layer, and where on the activation curve their values lie."""

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis.stream.activation_curves import CURVES, activation_check, flat_share
from model.analysis.stream.neurons import histogram, neuron_statistics, strongest
from model.nn.config import Activation
from model.trace.records import FeedForwardRecord
from viz.figures.activation import curve_over_values
from viz.figures.heatmap import Axis
from viz.figures.token_rows import colour_end
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.names import sublayer_name
from viz.notation.numbers import counted, difference
from viz.shell.pictures import chart, table
from viz.shell.token_select import choosable_rows, choose_token
from viz.state.look import Look
from viz.views.feed_forward import formulas as feed_forward_formulas

LAYER, TOKEN = "feed-forward-layer", "feed-forward-token"
SHOWN = 24  # neurons in the picture


@st.fragment
def neurons(seen: Look) -> None:
    """Token × strongest neurons of one layer."""
    layer_box, token_box = st.columns(2)
    with layer_box:
        record = chosen_layer(seen)
    if record is None:
        return
    tokens = tokens_of(seen, record)
    token = choose_token(token_box, tokens, TOKEN)
    found = neuron_statistics(record)
    peak = f"neuron {found.peak[1]} on token {found.peak[0]} " + _bold(tokens[found.peak[0]])
    st.markdown(
        f"**What to look for.** Which neurons are loud, and on which tokens? The strongest here is "
        f"{peak} with {found.peak_value:.2f}; the mean size over all neurons and tokens is "
        f"{found.mean_size:.3f}."
    )
    listed = strongest(record.hidden, SHOWN)
    values, count = record.hidden[:, listed], record.hidden.shape[1]
    picture, formula = st.columns([2, 1], gap="large")
    with picture:
        choosable_rows(
            values,
            tokens=tokens,
            columns=Axis(_rule(len(listed), count), [str(n) for n in listed], tokens=False),
            quantity="stream",
            end=colour_end(values),
            key="feed-forward-neurons",
            chosen=TOKEN,
        )
    with formula:
        _one_token(seen, record, token, tokens[token])
        st.markdown(
            f"Before the activation the mean over all {count:,} neurons and "
            f"{counted(len(tokens), 'token')} is {found.mean_before:.3f}, and "
            f"**{found.below_zero:.1%}** of the values lie below 0."
        )
    _check(seen.model.config.activation, record)
    rows = [f"{at} {token_label(text)}" for at, text in enumerate(tokens)]
    frame = pd.DataFrame(values, index=rows, columns=[f"neuron {n}" for n in listed])
    table(frame.rename_axis("token").reset_index(), "feed-forward-neurons")


def chosen_layer(seen: Look) -> FeedForwardRecord | None:
    """The layer of a list; None, with a sentence, where the model has no feed-forward layers."""
    records = {record.name: record for record in seen.trace.feed_forward}
    if not records:
        st.info(
            "This model has attention only: no feed-forward layers. Stories and MiniLM have them."
        )
        return None
    stacks = len(seen.trace.states)
    name = st.selectbox(
        "Layer",
        list(records),
        format_func=lambda name: sublayer_name(name, stacks=stacks),
        key=LAYER,
    )
    return records[name]


def tokens_of(seen: Look, record: FeedForwardRecord) -> list[str]:
    """The texts of the tokens that a layer reads."""
    stack = next(stack for stack in seen.trace.states if record.name.startswith(f"{stack}."))
    return [token.text for token in seen.trace.tokens_of(stack)]


def _rule(shown: int, count: int) -> str:
    return (
        f"the {shown} of {count:,} neurons with the largest<br>"
        "|activation| on any token, strongest first"
    )


def _bold(token: str) -> str:
    return f"**{plain(token_label(token))}**"


def _one_token(seen: Look, record: FeedForwardRecord, token: int, text: str) -> None:
    """The layer's formula, and the chosen token's strongest neuron through the activation."""
    activation = seen.model.config.activation
    neuron = int(np.abs(record.hidden[token]).argmax())
    before, hidden = float(record.before[token, neuron]), float(record.hidden[token, neuron])
    st.latex(feed_forward_formulas.feed_forward(seen.model.config))
    st.markdown(f"Token {token} {_bold(text)}, its strongest neuron, {neuron}:")
    st.latex(feed_forward_formulas.activation_in_numbers(activation, before, hidden))


def _check(activation: Activation, record: FeedForwardRecord) -> None:
    found = activation_check(activation, record.before, record.hidden)
    if found is None:
        st.caption(
            "The gate's value and a second map's are multiplied; the view of contributions checks them."
        )
        return
    st.caption(
        f"Check: the activation of all {record.before.size:,} recorded values, recomputed in double "
        f"precision, differs from the recorded one by at most {difference(found)}."
    )


@st.fragment
def on_the_curve(seen: Look) -> None:
    """The model's own activation over the values it met in this sentence."""
    record = chosen_layer(seen)
    if record is None:
        return
    activation = seen.model.config.activation
    curve, met = CURVES[activation], histogram(record.before)
    found = neuron_statistics(record)
    st.markdown(
        f"**What to look for.** {found.below_zero:.1%} of the values arrive below 0, where "
        f"{plain(curve.title.partition(',')[0])} lets little or nothing through."
    )
    picture, formula = st.columns([2, 1], gap="large")
    with picture:
        chart(curve_over_values(curve, met), "feed-forward-curve")
    with formula:
        st.latex(curve.latex)
        st.markdown(
            "Where the slope is near 0, hardly any gradient comes back. The slope lies between −0.05 "
            f"and 0.05 at **{flat_share(activation, record.before):.1%}** of the values."
        )
    _check(activation, record)
    frame = pd.DataFrame(
        {"from": met.edges[:-1], "to": met.edges[1:], "share of the values, %": 100 * met.shares}
    )
    table(frame, "feed-forward-curve")
