"""Dropout on the live activations and attention weights, as training would apply it."""

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis.stream.dropout import Dropped, dropped, mean_over_draws
from model.analysis.stream.neurons import strongest
from model.trace.arrays import Array
from viz.elements.one_of import one_of
from viz.figures.dropped import after_dropout
from viz.figures.heatmap import Axis
from viz.figures.token_rows import colour_end
from viz.notation.labels import token_label
from viz.shell.controls import choose_head, choose_layer
from viz.shell.pictures import chart, table
from viz.state.look import Look
from viz.views.feed_forward import formulas as feed_forward_formulas
from viz.views.feed_forward.neurons import SHOWN, chosen_layer, tokens_of

ACTIVATIONS, WEIGHTS = "Neurons", "Attention weights"
DRAWN = 4_000_000  # values, in all the draws that a mean is taken over


@st.fragment
def dropout_view(seen: Look) -> None:
    """p, a seed, training or evaluation: what is set to 0, and what the rest becomes."""
    what_box, mode_box, rate_box, seed_box = st.columns([2, 2, 2, 1])
    what = one_of("Dropout on", (ACTIVATIONS, WEIGHTS), "dropout-on", box=what_box)
    mode = one_of("Mode", ("Training", "Evaluation"), "dropout-mode", box=mode_box)
    training = mode == "Training"
    rate = rate_box.slider(
        "Rate p", 0.0, 0.9, 0.1, step=0.05, key="dropout-p", disabled=not training
    )
    seed = seed_box.number_input("Seed", 0, 9999, step=1, key="dropout-seed", disabled=not training)
    view = _on_activations if what == ACTIVATIONS else _on_weights
    view(seen, rate if training else 0.0, seed)


def _on_activations(seen: Look, rate: float, seed: int) -> None:
    record = chosen_layer(seen)
    if record is None:
        return
    found = dropped(record.hidden, rate, seed)
    _what_happened(record.hidden, found, rate)
    listed = strongest(record.hidden, SHOWN)
    name = f"the strongest {len(listed)} of {record.hidden.shape[1]:,} neurons"
    tokens = tokens_of(seen, record)
    picture, formula = st.columns([2, 1], gap="large")
    with picture:
        figure = after_dropout(
            found.values[:, listed],
            found.kept[:, listed],
            rows=Axis("token", tokens),
            columns=Axis(name, [str(n) for n in listed], tokens=False),
            quantity="stream",
            limit=colour_end(record.hidden[:, listed] / (1 - rate)).value,
        )
        chart(figure, "dropout-neurons")
    with formula:
        st.latex(feed_forward_formulas.DROPOUT)
        peak = int(np.abs(record.hidden[:, listed[0]]).argmax())
        value = float(record.hidden[peak, listed[0]])
        st.markdown(f"Neuron {listed[0]} on token {peak}, if it is kept:")
        st.latex(feed_forward_formulas.kept_in_numbers(value, rate))
    _derived()
    _table(found.values[:, listed], tokens, [f"neuron {n}" for n in listed])


def _on_weights(seen: Look, rate: float, seed: int) -> None:
    layer_box, head_box = st.columns(2)
    with layer_box:
        attention = seen.trace.find(choose_layer(seen.model.attention_names))
    with head_box:
        head = choose_head(attention.heads)
    weights, mask = attention.weights(head), attention.mask
    found = dropped(weights, rate, seed)
    blocked = None if mask is None else ~mask
    _what_happened(weights, found, rate, blocked)
    queries = [token.text for token in seen.trace.queries_of(attention)]
    keys = [token.text for token in seen.trace.keys_of(attention)]
    sums = found.values.sum(-1)
    picture, formula = st.columns([2, 1], gap="large")
    with picture:
        figure = after_dropout(
            found.values,
            found.kept,
            rows=Axis("query", queries),
            columns=Axis("key", keys),
            quantity="weight",
            blocked=blocked,
        )
        chart(figure, "dropout-weights")
    with formula:
        st.latex(feed_forward_formulas.DROPOUT)
        st.markdown(
            f"A row of weights sums to 1. After dropout the rows here sum to **{sums.min():.3f}** up "
            f"to **{sums.max():.3f}**."
        )
    _derived()
    frame_columns = [f"{at} {token_label(text)}" for at, text in enumerate(keys)]
    _table(np.column_stack([found.values, sums]), queries, [*frame_columns, "sum of the row"])


def _what_happened(
    before: Array, found: Dropped, rate: float, blocked: np.ndarray | None = None
) -> None:
    """Shares and means over all values; cells that were never allowed are left out."""
    if rate == 0:
        st.markdown(
            "**What to look for.** Nothing changes: with p = 0, and in evaluation, dropout is off."
        )
        return
    allowed = np.ones(before.shape, bool) if blocked is None else ~blocked
    draws = int(np.clip(DRAWN // before.size, 4, 40))
    values = before[allowed]
    st.markdown(
        f"**What to look for.** {(~found.kept[allowed]).mean():.1%} of all {values.size:,} values "
        f"became 0, the rest was divided by {1 - rate:.2g}. Their mean was "
        f"{values.mean(dtype=np.float64):.5f} and is {found.values[allowed].mean():.5f} in this draw; "
        f"over {draws} draws it is {mean_over_draws(values, rate, draws):.5f}."
    )


def _derived() -> None:
    st.caption(
        "Derived from the recorded values: the model itself ran in evaluation, where dropout is off."
    )


def _table(values: np.ndarray, rows: list[str], columns: list[str]) -> None:
    frame = pd.DataFrame(values, columns=columns)
    frame.insert(0, "token", [f"{at} {token_label(text)}" for at, text in enumerate(rows)])
    table(frame, "dropout")
