"""The result of a step of a worked example: every number in its cell, the slips framed."""

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from model.worked.example import Labels, Step
from viz.figures.cell_text import cell_text
from viz.figures.heatmap import NUMBERED, Axis, heatmap
from viz.figures.legend import ABOVE
from viz.notation.labels import plotly_words
from viz.notation.numbers import numbers
from viz.notation.theme import FEED_FORWARD, MASKED, OUTPUT, SLIP, STREAM, QuantityName

Cells = NDArray[np.bool_]
_COLOURED: dict[str, QuantityName] = {
    "query": "query",
    "key": "key",
    "value": "value",
    "score": "score",
    "weight": "weight",
    "output": "output",
}
_LINES = (STREAM, OUTPUT, FEED_FORWARD, MASKED)
_ROW, _ABOVE = 40, 70  # height of a row of cells and of the labels above them, in pixels
_LETTER, _AROUND = 7.5, 16  # width of a letter, and of the space around the words of a cell
_LONGEST_HEAD = 56  # letters above a single row; where its labels are longer it stands upright


def worked_step(step: Step) -> go.Figure:
    """A result of one or two axes: cells with their numbers, or lines where there are too many.

    Cells that a mask closes are grey and hatched, those that the notes print otherwise are framed.
    The figure's width is the least at which the numbers fit their cells.
    """
    values = np.atleast_2d(step.result)
    if values.shape[1] > NUMBERED:
        return _lines(step, values)
    return _cells(step, values)


def _cells(step: Step, values: NDArray[np.float64]) -> go.Figure:
    rows = labels(step.rows, len(values), alone=step.result.ndim == 1)
    columns = labels(step.columns, values.shape[1])
    blocked, differing = _cells_of(step.blocked, values), _cells_of(step.differing, values)
    if step.result.ndim == 1 and max(map(len, columns)) * len(columns) > _LONGEST_HEAD:
        rows, columns = columns, rows
        values, blocked, differing = values.T, blocked.T, differing.T
    words = numbers(values)
    figure = heatmap(
        values,
        rows=Axis("", rows, tokens=False),
        columns=Axis("", columns, tokens=False),
        quantity=_COLOURED.get(step.quantity),
        blocked=blocked,
        words=words,
        height=_ROW * len(values) + _ABOVE,
    )
    hover = "%{hovertext}<br>%{text}<extra></extra>"
    open_cells = figure.data[-1]
    open_cells.update(text=words, hovertemplate=hover, showscale=False)
    if step.quantity == "weight":  # dropout scales weights beyond 1, and shares may be in percent
        open_cells.update(zmax=max(1.0, float(values.max())))
    if (
        blocked.any() and step.quantity != "weight"
    ):  # a weight of 0 behind a mask is no number to read
        figure.add_traces(cell_text(words, np.where(blocked, 0.0, np.nan)))
    for row, column in np.argwhere(differing):
        figure.add_shape(**_frame(int(row), int(column)))
    cell = max(len(word) for row in (*words, columns) for word in row)
    figure.update_layout(width=_width(max(map(len, rows))) + len(columns) * _width(cell))
    return figure


def _width(letters: int) -> int:
    return round(_LETTER * letters) + _AROUND


def labels(given: Labels, count: int, *, alone: bool = False) -> list[str]:
    """The labels of an axis; numbers from 0 where it has none, nothing for one row by itself."""
    if given is not None:
        return list(given)
    return [""] if alone else [str(position) for position in range(count)]


def _cells_of(marked: Cells | None, values: NDArray[np.float64]) -> Cells:
    return np.zeros(values.shape, bool) if marked is None else marked.reshape(values.shape)


def _frame(row: int, column: int) -> dict[str, object]:
    return {
        "type": "rect",
        "x0": column - 0.47,
        "x1": column + 0.47,
        "y0": row - 0.44,
        "y1": row + 0.44,
        "line": {"color": SLIP, "width": 2.5},
    }


def _lines(step: Step, values: NDArray[np.float64]) -> go.Figure:
    """One line a row over the labels of the columns."""
    ticks = [plotly_words(label) for label in labels(step.columns, values.shape[1])]
    figure = go.Figure()
    for position, name in enumerate(labels(step.rows, len(values), alone=step.result.ndim == 1)):
        figure.add_trace(
            go.Scatter(
                y=values[position],
                name=plotly_words(name),
                mode="lines+markers",
                line={"color": _LINES[position % len(_LINES)]},
                text=ticks,
                hovertemplate="%{text}: %{y:.4f}<extra></extra>",
            )
        )
    every = -(-len(ticks) // NUMBERED)
    shown = list(range(0, len(ticks), every))
    figure.update_xaxes(tickvals=shown, ticktext=[ticks[position] for position in shown])
    figure.update_yaxes(title={"text": plotly_words(step.title)}, rangemode="tozero")
    figure.update_layout(
        height=340,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        legend=ABOVE,
        showlegend=len(values) > 1,
    )
    return figure
