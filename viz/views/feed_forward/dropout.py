"""Dropout on the live activations and attention weights, as training would apply it."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.analysis.stream.feed_forward import (
    Dropped,
    Effect,
    dropped,
    drops_in_training,
    head_dropped,
    mean_over_draws,
    of_embedding,
    of_neurons,
    of_output,
    of_weights,
    part_named,
    strongest,
    training_pass,
)
from model.analysis.stream.stream import Contribution, contributions
from model.nn.places import Place
from model.serving.engine import Request
from model.trace.arrays import Array, Mask
from viz.elements.error_boundary import error_boundary
from viz.elements.one_of import one_of
from viz.figures.cells import after_dropout
from viz.figures.heatmap import Axis, fitted_scale, heatmap
from viz.notation.labels import numbered_labels
from viz.notation.markdown import bold_token, plain
from viz.notation.numbers import signed
from viz.shell.controls import choose_layer_and_head
from viz.shell.pictures import TABLED, chart, look_for, of_all_pairs, table
from viz.state.engine import engine
from viz.state.look import Look, labels_of, loaded, traced
from viz.views.feed_forward import formulas
from viz.views.feed_forward.neurons import SHOWN, chosen_layer, tokens_of
from viz.views.feed_forward.sublayers import one_sublayer

EMBEDDING, WEIGHTS, OUTPUT, ACTIVATIONS = (
    "Embedding",
    "Attention weights",
    "Sub-layer output",
    "Neurons",
)
BEFORE, MASK, AFTER = "Before", "Mask", "After"
DRAWN = 4_000_000  # values, in all the draws that a mean is taken over
Places = tuple[DeltaGenerator, DeltaGenerator, DeltaGenerator]  # picture, words, what to look for


class Draw(NamedTuple):
    """One draw of dropout: the probability that a value becomes 0, and the seed; and what is drawn of it."""

    rate: float
    seed: int
    shown: str


@st.fragment
@error_boundary()
@of_all_pairs
def dropout_view(seen: Look) -> None:
    """A place, p and a seed: what is set to 0, what the rest becomes, what that changes."""
    picture, words = st.columns([2, 1], gap="large")
    with words:
        said = st.container()
        what = one_of("Dropout on", tuple(_VIEWS), "dropout-on", default=ACTIVATIONS)
        mode = one_of("Mode", ("Training", "Evaluation"), "dropout-mode")
        off = mode != "Training"
        left, right = st.columns([2, 1])
        rate = left.slider("Rate p", 0.0, 0.9, 0.1, step=0.05, key="dropout-p", disabled=off)
        seed = right.number_input("Seed", 0, 9999, step=1, key="dropout-seed", disabled=off)
        shown = one_of("Values", (BEFORE, MASK, AFTER), "dropout-shown", default=AFTER)
    _VIEWS[what](seen, Draw(0.0 if off else rate, seed, shown), (picture, words, said))
    if not off:
        _training_pass(seen, seed)


def _on_embedding(seen: Look, draw: Draw, places: Places) -> None:
    """The sum of token and position, as the first layer reads it."""
    trace = seen.trace
    values = trace.residual[trace.source][0]
    found = dropped(values, draw.rate, draw.seed)
    tokens = [token.text for token in trace.tokens]
    _vectors((values, found), tokens, "dimension", draw, places)
    _effect(of_embedding(values, found), tokens, draw, places, "before the first layer")


def _on_output(seen: Look, draw: Draw, places: Places) -> None:
    """What a sub-layer adds to the stream."""
    with places[1]:
        names = [part.name for part in _parts(seen)]
        name = one_sublayer("Sub-layer", names, seen, "dropout-sublayer")
    part = part_named(seen.model, seen.trace, name)
    found = dropped(part.added, draw.rate, draw.seed)
    tokens = [token.text for token in seen.trace.tokens_of(Place.named(name).stack)]
    _vectors((part.added, found), tokens, "dimension", draw, places)
    _effect(of_output(part, found), tokens, draw, places)


def _on_activations(seen: Look, draw: Draw, places: Places) -> None:
    with places[1]:
        record = chosen_layer(seen)
    if record is None:
        return
    hidden = record.hidden
    found = dropped(hidden, draw.rate, draw.seed)
    tokens = tokens_of(seen, record)
    _vectors((hidden, found), tokens, "neuron", draw, places)
    part = part_named(seen.model, seen.trace, record.name)
    _effect(of_neurons(seen.model, part, hidden, found), tokens, draw, places)


def _vectors(
    both: tuple[Array, Dropped], tokens: list[str], unit: str, draw: Draw, places: Places
) -> None:
    """(token, …) before and after: the columns with the largest values, one of them in numbers."""
    (values, found), (picture, words, said) = both, places
    listed = strongest(values, SHOWN)
    _what_happened(values, found, draw.rate, said)
    name = f"the {len(listed)} of {values.shape[1]:,} {unit}s with the largest values"
    rows, columns = Axis("token", tokens), Axis(name, [str(n) for n in listed], tokens=False)
    limit = float(np.abs(values[:, listed]).max()) / (1 - draw.rate) or 1.0
    drawn = {
        BEFORE: lambda: heatmap(
            values[:, listed], rows=rows, columns=columns, quantity="stream", limit=limit
        ),
        MASK: lambda: heatmap(
            found.kept[:, listed].astype(float),
            rows=rows,
            columns=columns,
            quantity="weight",
            decimals=0,
        ),
        AFTER: lambda: after_dropout(
            found.values[:, listed],
            found.kept[:, listed],
            rows=rows,
            columns=columns,
            quantity="stream",
            limit=limit,
        ),
    }
    figure = drawn[draw.shown]().update_xaxes(tickangle=-90)
    if draw.shown != MASK:
        lowest = float(values[:, listed].min()) / (1 - draw.rate)
        fitted_scale(figure, "stream", lowest)
    with picture:
        chart(figure, f"dropout-{unit}s")
        st.caption(f"The table names every {unit}; a narrow picture names every second one.")
    with words:
        st.latex(formulas.DROPOUT)
        peak = int(np.abs(values[:, listed[0]]).argmax())
        st.markdown(f"{unit.title()} {listed[0]} on token {peak}, if it is kept:")
        st.latex(formulas.kept_in_numbers(float(values[peak, listed[0]]), draw.rate))
    with picture:
        _derived(tokens, {f"{unit} {n}": found.values[:, n] for n in listed})


def _on_weights(seen: Look, draw: Draw, places: Places) -> None:
    picture, words, said = places
    with words:
        attention, head = choose_layer_and_head(seen.trace, seen.model.attention_names)
    weights = attention.weights(head)
    found = head_dropped(attention, head, draw.rate, draw.seed)
    blocked = None if attention.mask is None else ~attention.mask
    _what_happened(weights, found, draw.rate, said, blocked)
    queries, keys = labels_of(seen.trace, attention)
    sums = found.values.sum(-1)
    shown = {BEFORE: weights, MASK: found.kept.astype(float), AFTER: found.values}[draw.shown]
    with picture:
        figure = after_dropout(
            shown,
            found.kept | (draw.shown == BEFORE),
            rows=Axis("query", queries),
            columns=Axis("key", keys),
            quantity="weight",
            blocked=blocked,
        )
        chart(figure, "dropout-weights")
        columns = dict(zip(numbered_labels(keys), found.values.T, strict=True))
        columns = columns if len(keys) <= TABLED else {}
        _derived(queries, columns | {"sum of the row": sums})
    with words:
        st.latex(formulas.DROPOUT)
        st.markdown(
            f"A row of weights sums to 1{' with its sink' * (attention.sinks is not None)}. After dropout "
            f"the sums of the rows run from **{sums.min():.3f}** to **{sums.max():.3f}**."
        )
    part = part_named(seen.model, seen.trace, attention.name)
    effect = of_weights(seen.model, attention, part, draw.rate, draw.seed)
    _effect(effect, queries, draw, places)


def _parts(seen: Look) -> list[Contribution]:
    """Every sub-layer of all stacks."""
    return [
        part for stack in seen.trace.stacks for part in contributions(seen.model, seen.trace, stack)
    ]


def _effect(
    effect: Effect,
    tokens: list[str],
    draw: Draw,
    places: Places,
    where: str = "after this sub-layer",
) -> None:
    """How far this draw moves the stream."""
    shares = effect.shares
    most = int(shares.argmax())
    farthest = f" on average, most at token {most} {bold_token(tokens[most])}: {shares[most]:.1%}"
    with places[1]:
        st.markdown(
            f"**What it changes.** The stream {where} moves by **{shares.mean():.1%}** of its length"
            f"{farthest * (len(tokens) > 1)}. Computed from "
            "the recorded values and the model's own weights, with dropout at this place only."
        )


def _training_pass(seen: Look, seed: int) -> None:
    """What a real pass in training mode changes, where the model was made with dropout."""
    config = seen.model.config
    if not drops_in_training(config):
        st.caption(
            f"{plain(seen.title)} has no dropout in its config, so its own pass in training mode is "
            "the same as this one."
        )
        return
    try:
        moved = _moved(seen.request, seed)
    except ValueError as refusal:
        st.caption(plain(str(refusal)))
        return
    st.markdown(
        "**A real pass in training mode.** With this seed and the dropout of the model's config, "
        f"p = {config.dropout:g} on embeddings and sub-layers and p = {config.attention_dropout:g} on "
        f"weights, the last layer's state moves by **{moved:.1%}** of its length on average."
    )


@lru_cache(maxsize=64)
def _moved(request: Request, seed: int) -> float:
    """The mean share by which a pass in training mode moves the last state."""
    model, trace = loaded(request.model), traced(request)
    with engine().turn(lambda place: None):
        return float(training_pass(model, trace, seed).shares.mean())


_VIEWS: Mapping[str, Callable[[Look, Draw, Places], None]] = {
    EMBEDDING: _on_embedding,
    WEIGHTS: _on_weights,
    OUTPUT: _on_output,
    ACTIVATIONS: _on_activations,
}


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
    means = [
        signed(f"{mean:.5f}")
        for mean in (
            values.mean(dtype=np.float64),
            found.values[allowed].mean(),
            mean_over_draws(values, rate, draws),
        )
    ]
    look_for(
        "Crossed values became 0. The others grew, so that on average over many draws nothing changes.",
        said,
    )
    said.caption(
        f"{(~found.kept[allowed]).mean():.1%} of all {values.size:,} values became 0; the others "
        f"were divided by {1 - rate:.2g}. The mean was {means[0]} and is {means[1]} in this draw; over "
        f"{draws} draws it is {means[2]}."
    )


def _derived(tokens: list[str], columns: dict[str, np.ndarray]) -> None:
    st.caption(
        "Derived from the recorded values: the model itself ran in evaluation, where dropout is off."
    )
    table({"token": numbered_labels(tokens), **columns}, "dropout")
