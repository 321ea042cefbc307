"""The result of a step of a worked example: every number in its cell, errata framed."""

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from model.worked.example import Labels, Step
from viz.figures.chart import chart, line, titled
from viz.figures.heatmap import NUMBERED, Axis, cell_text, heatmap
from viz.notation.labels import plotly_words, tick_positions
from viz.notation.numbers import numbers
from viz.notation.theme import ERRATUM, FEED_FORWARD, MASKED, OUTPUT, STREAM, QuantityName

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

    Masked cells are grey and hatched; cells for which the notes print another number are framed.
    The figure's width is the least at which the numbers fit their cells.
    """
    values = np.atleast_2d(step.result)
    rows = labels(step.rows, len(values), alone=step.result.ndim == 1)
    columns = labels(step.columns, values.shape[1])
    if values.shape[1] > NUMBERED:
        return _lines(step.title, values, rows, [plotly_words(label) for label in columns])
    blocked, differing = (
        np.zeros(values.shape, bool) if marked is None else marked.reshape(values.shape)
        for marked in (step.blocked, step.differing)
    )
    if step.result.ndim == 1 and max(map(len, columns)) * len(columns) > _LONGEST_HEAD:
        rows, columns = columns, rows
        values, blocked, differing = values.T, blocked.T, differing.T
    return _cells(step.quantity, values, blocked, differing, rows=rows, columns=columns)


def labels(given: Labels, count: int, *, alone: bool = False) -> list[str]:
    """The labels of an axis, or else numbers from 0; nothing for a single row."""
    if given is not None:
        return list(given)
    return [""] if alone else [str(position) for position in range(count)]


def _cells(
    quantity: str,
    values: NDArray[np.float64],
    blocked: Cells,
    differing: Cells,
    *,
    rows: list[str],
    columns: list[str],
) -> go.Figure:
    words = numbers(values)
    figure = heatmap(
        values,
        rows=Axis("", rows, tokens=False),
        columns=Axis("", columns, tokens=False),
        quantity=_COLOURED.get(quantity),
        blocked=blocked,
        words=words,
        height=_ROW * len(values) + _ABOVE,
    )
    hover = "%{hovertext}<br>%{text}<extra></extra>"
    open_cells = figure.data[-1]
    open_cells.update(text=words, hovertemplate=hover, showscale=False)
    if quantity == "weight":  # dropout scales weights beyond 1, and shares may be in percent
        open_cells.update(zmax=max(1.0, float(values.max())))
    elif blocked.any():  # a masked weight is 0 and not worth a number
        figure.add_traces(cell_text(words, np.where(blocked, 0.0, np.nan)))
    frame = {"type": "rect", "line": {"color": ERRATUM, "width": 2.5}}
    for row, column in np.argwhere(differing).tolist():
        across, down = (
            {"x0": column - 0.47, "x1": column + 0.47},
            {"y0": row - 0.44, "y1": row + 0.44},
        )
        figure.add_shape(**frame, **across, **down)
    cell = max(len(word) for row in (*words, columns) for word in row)
    return figure.update_layout(width=_width(max(map(len, rows))) + len(columns) * _width(cell))


def _width(letters: int) -> int:
    return round(_LETTER * letters) + _AROUND


def _lines(
    title: str, values: NDArray[np.float64], names: list[str], ticks: list[str]
) -> go.Figure:
    """One line for each row over the labels of the columns."""
    places = list(range(len(ticks)))
    lines = [
        line(
            places,
            row,
            plotly_words(name),
            _LINES[number % len(_LINES)],
            mode="lines+markers",
            width=2,
            text=ticks,
            hover="%{text}: %{y:.4f}",
        )
        for number, (name, row) in enumerate(zip(names, values, strict=True))
    ]
    shown = tick_positions(len(ticks), NUMBERED)
    across: dict[str, object] = {"tickvals": shown, "ticktext": [ticks[place] for place in shown]}
    up = titled(plotly_words(title), rangemode="tozero")
    return chart(lines, across, up, height=340, showlegend=len(values) > 1)
