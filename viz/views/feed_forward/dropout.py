"""Dropout on the live activations and attention weights, as training would apply it."""

from typing import NamedTuple

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.analysis.stream.neurons import Dropped, dropped, mean_over_draws, strongest
from model.trace.arrays import Array, Mask
from viz.elements.one_of import one_of
from viz.figures.heatmap import Axis
from viz.figures.marked_cells import after_dropout
from viz.figures.token_rows import colour_end
from viz.notation.labels import numbered_labels
from viz.shell.controls import choose_layer_and_head
from viz.shell.pictures import chart, look_for, table
from viz.state.look import Look, labels_of
from viz.views.feed_forward import formulas
from viz.views.feed_forward.neurons import SHOWN, chosen_layer, tokens_of

ACTIVATIONS, WEIGHTS = "Neurons", "Attention weights"
DRAWN = 4_000_000  # values, in all the draws that a mean is taken over


Places = tuple[DeltaGenerator, DeltaGenerator, DeltaGenerator]  # picture, words, what to look for


class Draw(NamedTuple):
    """One draw of dropout: with which probability a value becomes 0, and the seed."""

    rate: float
    seed: int


@st.fragment
def dropout_view(seen: Look) -> None:
    """p, a seed, training or evaluation: what is set to 0, and what the rest becomes."""
    picture, words = st.columns([2, 1], gap="large")
    with words:
        said = st.container()
        what = one_of("Dropout on", (ACTIVATIONS, WEIGHTS), "dropout-on")
        mode = one_of("Mode", ("Training", "Evaluation"), "dropout-mode")
        off = mode != "Training"
        left, right = st.columns([2, 1])
        rate = left.slider("Rate p", 0.0, 0.9, 0.1, step=0.05, key="dropout-p", disabled=off)
        seed = right.number_input("Seed", 0, 9999, step=1, key="dropout-seed", disabled=off)
    view = _on_activations if what == ACTIVATIONS else _on_weights
    view(seen, Draw(0.0 if off else rate, seed), (picture, words, said))


def _on_activations(seen: Look, draw: Draw, places: Places) -> None:
    picture, words, said = places
    with words:
        record = chosen_layer(seen)
    if record is None:
        return
    hidden = record.hidden
    found, listed = dropped(hidden, *draw), strongest(hidden, SHOWN)
    _what_happened(hidden, found, draw.rate, said)
    tokens = tokens_of(seen, record)
    name = f"the {len(listed)} of {hidden.shape[1]:,} neurons with the largest values"
    with picture:
        figure = after_dropout(
            found.values[:, listed],
            found.kept[:, listed],
            rows=Axis("token", tokens),
            columns=Axis(name, [str(n) for n in listed], tokens=False),
            quantity="stream",
            limit=colour_end(hidden[:, listed] / (1 - draw.rate)).value,
        )
        chart(figure, "dropout-neurons")
    with words:
        st.latex(formulas.DROPOUT)
        peak = int(np.abs(hidden[:, listed[0]]).argmax())
        st.markdown(f"Neuron {listed[0]} on token {peak}, if it is kept:")
        st.latex(formulas.kept_in_numbers(float(hidden[peak, listed[0]]), draw.rate))
    _derived(tokens, {f"neuron {n}": found.values[:, n] for n in listed})


def _on_weights(seen: Look, draw: Draw, places: Places) -> None:
    picture, words, said = places
    with words:
        attention, head = choose_layer_and_head(seen.trace, seen.model.attention_names)
    weights = attention.weights(head)
    found = dropped(weights, *draw)
    blocked = None if attention.mask is None else ~attention.mask
    _what_happened(weights, found, draw.rate, said, blocked)
    queries, keys = labels_of(seen.trace, attention)
    sums = found.values.sum(-1)
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
    with words:
        st.latex(formulas.DROPOUT)
        st.markdown(
            "A row of weights sums to 1. After dropout the sums of the rows run from "
            f"**{sums.min():.3f}** to **{sums.max():.3f}**."
        )
    columns = dict(zip(numbered_labels(keys), found.values.T, strict=True))
    _derived(queries, columns | {"sum of the row": sums})


def _what_happened(
    before: Array, found: Dropped, rate: float, said: DeltaGenerator, blocked: Mask | None = None
) -> None:
    """Shares and means over all values; cells that were never allowed are left out."""
    if rate == 0:
        look_for("Nothing changes: dropout is off with p = 0 and in evaluation.", said)
        return
    allowed = np.ones(before.shape, bool) if blocked is None else ~blocked
    draws = int(np.clip(DRAWN // before.size, 4, 40))
    values = before[allowed]
    look_for(
        f"{(~found.kept[allowed]).mean():.1%} of all {values.size:,} values became 0; the others "
        f"were divided by {1 - rate:.2g}. The mean was {values.mean(dtype=np.float64):.5f} and is "
        f"{found.values[allowed].mean():.5f} in this draw; over {draws} draws it is "
        f"{mean_over_draws(values, rate, draws):.5f}.",
        said,
    )


def _derived(tokens: list[str], columns: dict[str, np.ndarray]) -> None:
    st.caption(
        "Derived from the recorded values: the model itself ran in evaluation, where dropout is off."
    )
    table({"token": numbered_labels(tokens), **columns}, "dropout")
