"""Dropout on the live activations and attention weights, as training would apply it."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go
import streamlit as st

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
from model.analysis.stream.stream import contributions
from model.nn.places import Place
from model.serving.engine import Request
from model.trace.arrays import Array
from model.trace.records import Attention
from viz.elements.one_of import one_of
from viz.figures.cells import after_dropout
from viz.figures.heatmap import Axis, fitted_scale, heatmap
from viz.notation.labels import numbered_labels
from viz.notation.markdown import plain
from viz.notation.numbers import signed
from viz.notation.words import sentences_of
from viz.shell.panel import Caption, Formula, Panel, Part, Table
from viz.shell.pictures import TABLED, of_all_pairs
from viz.state.engine import engine
from viz.state.look import Look, labels_of, loaded, traced
from viz.views.feed_forward import formulas
from viz.views.feed_forward.neurons import SHOWN, choose_neurons, choose_sublayer, tokens_of

say = sentences_of("experiments.dropout")

EMBEDDING, WEIGHTS, OUTPUT, ACTIVATIONS = (
    "Embedding",
    "Attention weights",
    "Sub-layer output",
    "Neurons",
)
BEFORE, MASK, AFTER = "Before", "Mask", "After"
_SEED = "dropout-seed"  # session state
DRAWN = 4_000_000  # values, in all the draws that a mean is taken over
_DERIVED = Caption(say("derived_recorded_values"))


class Draw(NamedTuple):
    """One draw of dropout: the probability that a value becomes 0, and the seed; and what is drawn of it."""

    rate: float
    seed: int
    shown: str


@of_all_pairs
def dropout_view(look: Look) -> Panel:
    """A place, p and a draw: what is set to 0, what the rest becomes, what that changes."""
    what = st.selectbox("Dropout on", list(_VIEWS), key="dropout-on", width=190)
    shown = one_of("Values", (BEFORE, MASK, AFTER), "dropout-shown", default=AFTER)
    rate = st.slider("Rate p", 0.0, 0.9, 0.1, step=0.05, key="dropout-p", width=180)
    seed = st.session_state.setdefault(_SEED, 0)
    st.button("Draw again", key="dropout-again", on_click=_draw_again, disabled=rate == 0)
    panel = _VIEWS[what](look, Draw(rate, seed, shown))
    return panel if rate == 0 else replace(panel, below=[*panel.below, _training_pass(look, seed)])


def _draw_again() -> None:
    st.session_state[_SEED] += 1


def _on_embedding(look: Look, draw: Draw) -> Panel:
    """The sum of token and position, as the first layer reads it."""
    values = look.trace.residual[look.trace.source][0]
    tokens = [token.text for token in look.trace.tokens]
    where = say("before_first_layer")
    return _vectors(values, partial(of_embedding, values), tokens, "dimension", draw, where)


def _on_output(look: Look, draw: Draw) -> Panel:
    """What a sub-layer adds to the stream."""
    trace = look.trace
    parts = [part for stack in trace.stacks for part in contributions(look.model, trace, stack)]
    names = [part.name for part in parts]
    name = choose_sublayer("Sub-layer", names, look, "dropout-sublayer")
    part = part_named(look.model, trace, name)
    tokens = [token.text for token in trace.tokens_of(Place.named(name).stack)]
    return _vectors(part.added, partial(of_output, part), tokens, "dimension", draw)


def _on_activations(look: Look, draw: Draw) -> Panel:
    record = choose_neurons(look)
    part = part_named(look.model, look.trace, record.name)
    effect = partial(of_neurons, look.model, part, record.hidden)
    return _vectors(record.hidden, effect, tokens_of(look, record), "neuron", draw)


def _vectors(
    values: Array,
    effect: Callable[[Dropped], Effect],
    tokens: list[str],
    unit: str,
    draw: Draw,
    where: str = say("after_sub_layer"),
) -> Panel:
    """The columns with the largest values, one of them in numbers.

    Args:
        values: (token, …) before the draw.
        effect: what the values after it change; where: of which stream, in words.
        tokens: of the rows.
        unit: what a column is.
    """
    after = dropped(values, draw.rate, draw.seed)
    listed = strongest(values, SHOWN)
    peak = int(np.abs(values[:, listed[0]]).argmax())
    words, means = _what_happened(values, after, draw.rate, np.ones(values.shape, bool))
    return Panel(
        f"dropout-{unit}s",
        look_for=words,
        picture=_strongest(values, after, tokens, unit, draw),
        beside=[
            *means,
            Formula(formulas.DROPOUT),
            say("token_kept", title=unit.title(), first_listed=listed[0], peak=peak),
            Formula(formulas.kept_in_numbers(float(values[peak, listed[0]]), draw.rate)),
            _effect(effect(after), tokens, where),
        ],
        below=[
            Caption(say("table_names_every", unit=unit)),
            _DERIVED,
        ],
        table=Table(
            {"token": numbered_labels(tokens)} | {f"{unit} {n}": after.values[:, n] for n in listed}
        ),
    )


def _strongest(
    values: Array, after: Dropped, tokens: list[str], unit: str, draw: Draw
) -> go.Figure:
    """The columns with the largest values, as `_vectors` has them."""
    listed = strongest(values, SHOWN)
    name = say("largest_values", listed=len(listed), values=values.shape[1], unit=unit)
    rows, columns = Axis("token", tokens), Axis(name, [str(n) for n in listed], tokens=False)
    limit = float(np.abs(values[:, listed]).max()) / (1 - draw.rate) or 1.0
    kept = after.kept[:, listed]
    if draw.shown == MASK:
        figure = heatmap(
            kept.astype(float), rows=rows, columns=columns, quantity="weight", decimals=0
        )
        return figure.update_xaxes(tickangle=-90)
    if draw.shown == BEFORE:
        figure = heatmap(
            values[:, listed], rows=rows, columns=columns, quantity="stream", limit=limit
        )
    else:
        figure = after_dropout(
            after.values[:, listed],
            kept,
            rows=rows,
            columns=columns,
            quantity="stream",
            limit=limit,
        )
    lowest = float(values[:, listed].min()) / (1 - draw.rate)
    return fitted_scale(figure.update_xaxes(tickangle=-90), "stream", lowest)


def _on_weights(look: Look, draw: Draw) -> Panel:
    attention, head = look.attention, look.head
    weights = attention.weights(head)
    after = head_dropped(attention, head, draw.rate, draw.seed)
    blocked = None if attention.mask is None else ~attention.mask
    allowed = np.ones(weights.shape, bool) if blocked is None else ~blocked
    _, means = _what_happened(weights, after, draw.rate, allowed)
    queries, keys = labels_of(look.trace, attention)
    sums = after.values.sum(-1)
    part = part_named(look.model, look.trace, attention.name)
    effect = of_weights(look.model, attention, part, draw.rate, draw.seed)
    cells = dict(zip(numbered_labels(keys), after.values.T, strict=True))
    return Panel(
        "dropout-weights",
        look_for=_row_sums(attention, sums, draw),
        picture=after_dropout(
            {BEFORE: weights, MASK: after.kept.astype(float), AFTER: after.values}[draw.shown],
            after.kept | (draw.shown == BEFORE),
            rows=Axis("query", queries),
            columns=Axis("key", keys),
            quantity="weight",
            blocked=blocked,
        ),
        beside=[
            Formula(formulas.DROPOUT),
            *means,
            _effect(effect, queries, say("after_sub_layer")),
        ],
        below=[_DERIVED],
        table=Table(
            {"token": numbered_labels(queries)}
            | (cells if len(keys) <= TABLED else {})
            | {say("sum_row"): sums}
        ),
    )


def _row_sums(attention: Attention, sums: Array, draw: Draw) -> str:
    """What becomes of the sum of a row of weights."""
    if draw.rate == 0:
        return say("nothing_changes_dropout")
    return say(
        "average_only_row",
        value=" with its sink" * (attention.sinks is not None),
        least_sums=sums.min(),
        most_sums=sums.max(),
        draw_value=1 - draw.rate,
    )


_VIEWS: dict[str, Callable[[Look, Draw], Panel]] = {
    WEIGHTS: _on_weights,
    EMBEDDING: _on_embedding,
    OUTPUT: _on_output,
    ACTIVATIONS: _on_activations,
}


def _effect(effect: Effect, tokens: list[str], where: str) -> str:
    """How far a draw moves the stream."""
    shares = effect.shares
    most = int(shares.argmax())
    farthest = say(
        "average_most_token", most=most, most_tokens=tokens[most], most_shares=shares[most]
    )
    return say(
        "changes_stream_moves",
        where=where,
        mean_shares=shares.mean(),
        farthest=farthest * (len(tokens) > 1),
    )


def _training_pass(look: Look, seed: int) -> Part:
    """What a real pass in training mode changes, where the model was made with dropout."""
    config = look.model.config
    if not drops_in_training(config):
        return Caption(say("dropout_config_own", look=look.title))
    try:
        moved = _moved(look.request, seed)
    except ValueError as refusal:
        return Caption(plain(str(refusal)))
    return say(
        "real_pass_training",
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
        moved=moved,
    )


@lru_cache(maxsize=64)
def _moved(request: Request, seed: int) -> float:
    """The mean share by which a pass in training mode moves the last state."""
    model, trace = loaded(request.model), traced(request)
    with engine().turn():
        return float(training_pass(model, trace, seed).shares.mean())


def _what_happened(
    before: Array, after: Dropped, rate: float, allowed: np.ndarray
) -> tuple[str, list[Part]]:
    """What to look for, and shares and means over all values that are allowed."""
    if rate == 0:
        return say("nothing_changes_dropout"), []
    draws = int(np.clip(DRAWN // before.size, 4, 40))
    values = before[allowed]
    was, now, over_draws = (
        signed(f"{mean:.5f}")
        for mean in (
            values.mean(dtype=np.float64),
            after.values[allowed].mean(),
            mean_over_draws(values, rate, draws),
        )
    )
    words = say("crossed_values_became")
    shares = say(
        "values_became_0",
        mean_value=(~after.kept[allowed]).mean(),
        values=values.size,
        value=1 - rate,
        was=was,
        now=now,
        draws=draws,
        over_draws=over_draws,
    )
    return words, [Caption(shares)]
