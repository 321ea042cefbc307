"""The edges of one row: each key's weight, and beside it what that edge carries."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.figures.chart import Axis, bars_across, chart, titled
from viz.figures.heatmap import NARROW, NUMBERED, queries_by_keys
from viz.notation.labels import plotly_label
from viz.notation.numbers import signed
from viz.notation.theme import LESS, MASKED, MORE, STREAM, WEIGHT, rgba

Numbers = NDArray[np.floating]
_ROOM = 0.35  # of the longest bar, for its number


def edge_bars(
    tokens: Sequence[str], weights: Numbers, carried: Numbers, *, title: str, is_signed: bool
) -> go.Figure:
    """weights, carried (key,) of some keys from the top down. title: what is carried. is_signed: whether it
    adds to a number, red above 0 and blue below; else it is the length of a vector. The points of both
    traces are numbered as the keys.

    Raises ValueError if tokens and numbers do not fit.
    """
    if weights.shape != (len(tokens),) or carried.shape != weights.shape:
        raise ValueError(f"{weights.shape} weights, {carried.shape} edges, {len(tokens)} tokens.")
    colours = [MORE if value >= 0 else LESS for value in carried] if is_signed else STREAM
    form = "+.2f" if is_signed else ".2f"
    labels = [plotly_label(text) for text in tokens]
    traces = [
        _bars(weights, WEIGHT, _written(weights, ".2f"), labels, "weight %{x:.4f}"),
        _bars(
            carried,
            colours,
            _written(carried, form),
            labels,
            f"{title} %{{x:.4f}}",
            xaxis="x2",
        ),
    ]
    low, high = min(0.0, float(carried.min())), max(0.0, float(carried.max()))
    room = _ROOM * (max(high, -low) or 1.0)
    across = {"zeroline": True, "zerolinecolor": MASKED, "nticks": 4, "fixedrange": True}
    beside = titled(
        title, range=[low - room if low < 0 else 0.0, high + room], domain=[0.54, 1.0], **across
    )
    first = titled("weight", range=[0.0, 1.0 + _ROOM], domain=[0.0, 0.46], **across)
    first["tickvals"] = [0, 0.5, 1]
    keys = Axis("", tokens).down(len(tokens), fixedrange=True)
    height = 24 * len(tokens) + 70
    figure = chart(traces, first, keys, height=height, xaxis2=beside, bargap=0.25)
    figure.update_layout(clickmode="event+select", dragmode=False, showlegend=False)
    return figure


def _written(values: Numbers, form: str) -> list[str]:
    """The numbers beside the bars; one that would be written "0.00" is left out."""
    return [signed(f"{value:{form}}") if round(value, 2) else "" for value in values.tolist()]


def edge_lengths(
    lengths: Numbers,
    *,
    queries: Sequence[str],
    keys: Sequence[str],
    blocked: NDArray[np.bool_] | None,
) -> go.Figure:
    """lengths (query, key) of what every edge of a head carries, from 0 to the largest. blocked: True where
    a cell is masked. Raises ValueError if labels and lengths do not fit."""
    words = () if NARROW < len(keys) <= NUMBERED else None
    figure = queries_by_keys(
        lengths, queries, keys, quantity="stream", blocked=blocked, words=words
    )
    return figure.update_traces(
        zmin=0,
        colorscale=[[0, rgba(STREAM, 0.0)], [1, rgba(STREAM, 1.0)]],
        selector={"showscale": True},
    )


def _bars(
    values: Numbers,
    colour: object,
    words: Sequence[str],
    labels: Sequence[str],
    hover: str,
    **more: object,
) -> go.Bar:
    steady = {"marker": {"opacity": 1}}
    return bars_across(
        values.tolist(),
        colour,
        text=words,
        textposition="outside",
        hovertext=labels,
        hover=f"%{{hovertext}}<br>{hover}",
        selected=steady,
        unselected=steady,
        **more,
    )
