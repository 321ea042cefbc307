"""Curves over the depth of a model, and over positions."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.figures.chart import chart, line, titled
from viz.notation.theme import MASKED, STREAM

_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
# Okabe and Ito's palette without the colours that stand for query, key and value.
COLOURS = ("#CC79A7", "#56B4E9", "#E69F00", "#8C8C94", "#8E6BBF", "#B2A000")


def likeness_lines(
    word: NDArray[np.floating], others: NDArray[np.floating] | None, *, states: Sequence[str]
) -> go.Figure:
    """Cosines (state,) of one word's vectors in two sentences, and the mean with other tokens, if there
    are any. Raises ValueError if states and cosines are not equally many."""
    if word.shape != (len(states),):
        raise ValueError(f"{word.shape} cosines for {len(states)} states.")
    drawn = [("the word in both sentences", word, STREAM, "solid")]
    if others is not None:
        drawn.append(("the word and the other tokens, on average", others, MASKED, "dot"))
    places = list(range(len(states)))
    lines = [
        line(
            places,
            cosines,
            name,
            colour,
            dash=dash,
            mode="lines+markers",
            hovertext=list(states),
            hover="%{hovertext}<br>cosine %{y:.4f}",
        )
        for name, cosines, colour, dash in drawn
    ]
    lowest = min(0.0, *(float(cosines.min()) for _, cosines, _, _ in drawn))
    ticks = {"tickvals": places, "ticktext": list(states), "tickangle": -40, "showgrid": False}
    across = titled("state of the stream", **ticks)
    return chart(lines, across, titled("cosine similarity", range=[1.1 * lowest, 1.06]), height=430)


def gradient_by_depth(with_shortcuts: Sequence[float], without: Sequence[float]) -> go.Figure:
    """The gradient at each state of a deep stack, in powers of ten; entry 0 is the input of the stack."""
    lines = [
        line(
            list(range(len(sizes))),
            list(sizes),
            name,
            colour,
            dash=dash,
            mode="lines+markers",
            marker={"size": 5},
            hover="before block %{x}: %{y:.2e}",
        )
        for name, sizes, colour, dash in (
            ("with shortcuts: x + f(x)", with_shortcuts, STREAM, "solid"),
            ("without: f(x)", without, MASKED, "dash"),
        )
    ]
    up = titled("size of the gradient", type="log", exponentformat="power", nticks=8)
    return chart(lines, titled("blocks passed, from input to loss"), up, height=420)


def position_curves(
    table: NDArray[np.floating], columns: Sequence[int], *, column_name: str, value_name: str
) -> go.Figure:
    """table (position, column): one curve for each of the chosen columns."""
    lines = [
        line(
            list(range(len(table))),
            table[:, column],
            f"{column_name} {column}",
            COLOURS[number % len(COLOURS)],
            dash=_DASHES[number % len(_DASHES)],
            mode="lines+markers" if len(table) <= 32 else "lines",
            marker={"size": 4},
            width=2,
            hover=f"{column_name} {column}, position %{{x}}<br>%{{y:.4f}}",
        )
        for number, column in enumerate(columns)
    ]
    across = titled("position", rangemode="tozero")
    return chart(lines, across, titled(value_name), height=430, showlegend=True)
