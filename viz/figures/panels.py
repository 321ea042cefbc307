"""Matrices of equal shape side by side, in one picture: their rows are named once."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.figures.chart import Axis
from viz.figures.heatmap import NUMBERED, Matrix, heatmap
from viz.figures.room import TITLE_LINE, height_of_labels
from viz.figures.squares import ABOVE, BELOW
from viz.notation.labels import tick_positions, token_label
from viz.notation.theme import MASKED, QuantityName, rgba
from viz.notation.visible import WORD_JOINER

_EDGE = 8  # pixels below cells without a scale
_LABELS = 48  # above all panels together

_LETTERS = 8  # of a token
_TITLE = 12  # size of the words above a panel


def panels(
    matrices: Mapping[str, Matrix],
    *,
    tokens: Sequence[str],
    quantity: QuantityName | None,
    blocked: Sequence[NDArray[np.bool_]],
    numbered: int = NUMBERED,
) -> go.Figure:
    """matrices (query, key) by what stands above them, with an empty column between two.

    blocked: of each, True where a cell is masked: hatched, without a number. numbered: with more tokens no
    cell holds a number. quantity None: plain tiles with whole numbers.
    """
    count = len(tokens)
    labels = [token_label(token, _LETTERS) for token in tokens]
    values = _beside([np.asarray(each, np.float32) for each in matrices.values()], np.nan)
    closed = _beside(list(blocked), False)
    written = None if quantity else [[f"{value:.0f}" for value in row] for row in values]
    figure = heatmap(
        values,
        rows=Axis("query", labels, tokens=False),
        columns=Axis("", ([*labels, ""] * len(matrices))[:-1], tokens=False),
        quantity=quantity,
        blocked=closed,
        words=written if count <= numbered else (),
        square=True,
    )
    if quantity is None:
        figure.data[-1].hovertemplate = "%{hovertext}<br>%{z:.0f}<extra></extra>"
        figure.update_layout(margin_b=_EDGE, height=figure.layout.height - BELOW + _EDGE)
    axis = figure.layout.xaxis
    axis.update(_ticks(labels, len(matrices)))
    above = height_of_labels(axis.ticktext, axis.tickangle or 0) or ABOVE
    figure.update_layout(margin_t=above)
    return _titled_and_framed(figure, list(matrices), count, above - TITLE_LINE)


def _beside(matrices: Sequence[NDArray[Any]], between: float | bool) -> NDArray[Any]:
    empty = np.full((len(matrices[0]), 1), between, matrices[0].dtype)
    return np.hstack([part for each in matrices for part in (each, empty)][:-1])


def _ticks(labels: Sequence[str], count: int) -> dict[str, list[Any]]:
    """The same labels above each of so many panels. Between two panels of an odd number stands one without
    letters, so that a narrow picture leaves out the same ones in both."""
    shown = tick_positions(len(labels), _LABELS // count)
    named = [*labels, WORD_JOINER]
    if len(shown) % 2 and len(shown) == len(labels):
        shown = (*shown, len(labels))
    places = [(panel * len(named) + at, named[at]) for panel in range(count) for at in shown]
    last = count * len(named) - 1
    places = [(at, label) for at, label in places if at < last]
    return {"tickvals": [at for at, _ in places], "ticktext": [label for _, label in places]}


def _titled_and_framed(
    figure: go.Figure, names: Sequence[str], count: int, above: float
) -> go.Figure:
    """A title and a frame for each panel. above: pixels from the cells to the titles."""
    figure.update_xaxes(showline=False).update_yaxes(showline=False)
    for panel, name in enumerate(names):
        left = panel * (count + 1) - 0.5
        sides = {"x0": left, "x1": left + count, "y0": -0.5, "y1": count - 0.5}
        figure.add_shape(type="rect", line={"color": rgba(MASKED, 0.5), "width": 1}, **sides)
        figure.add_annotation(
            text=name,
            x=left + count / 2,
            y=1,
            yref="paper",
            yanchor="bottom",
            yshift=above,
            showarrow=False,
            font={"size": _TITLE},
        )
    return figure
