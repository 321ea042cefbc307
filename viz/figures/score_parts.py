"""A score as a sum: each pair of parts, one of the query and one of the key, is a cell."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from viz.figures.chart import Axis
from viz.figures.head_marks import CELLS, add_marks
from viz.figures.heatmap import NUMBERED, Matrix, heatmap
from viz.notation.labels import plotly_label
from viz.notation.numbers import signed

_TOKEN = 14  # characters of a token in a title
_LEAST = 0.005  # a smaller number would be written "0.00"
_TOLD = 0.05  # of the largest value: a smaller one has no number in its cell


def score_parts(
    values: Matrix,
    *,
    query: str,
    key: str,
    query_parts: Sequence[str],
    key_parts: Sequence[str],
    words: Sequence[str],
) -> go.Figure:
    """values (query part, key part). query, key: the tokens whose vectors are split. words: what hovering
    says of each cell, row by row, as Plotly may draw it. The trace "heads" has one point for each cell."""
    figure = heatmap(
        values,
        rows=Axis(f"query of {plotly_label(query, _TOKEN)}", query_parts, tokens=False),
        columns=Axis(f"key of {plotly_label(key, _TOKEN)}", key_parts, tokens=False),
        quantity="score",
        words=_numbers(values),
        square=True,
    )
    figure.data[-1].update(hoverinfo="skip", hovertemplate=None, hovertext=None)
    rows, columns = values.shape
    cells = [(row, column) for row in range(rows) for column in range(columns)]
    add_marks(figure, cells, CELLS, words=words, chosen=None)
    return figure


def _numbers(values: Matrix) -> list[list[str]] | None:
    """The numbers where they fit; a small one would touch its neighbours and says little."""
    if max(values.shape) > NUMBERED:
        return None
    least = _TOLD * float(np.abs(values).max(initial=0.0))
    return [
        [signed(f"{value:.2f}") if abs(value) >= max(least, _LEAST) else "" for value in row]
        for row in values.tolist()
    ]
