"""How far each part of another run moves an answer: one cell a part, each can be clicked."""

from collections.abc import Sequence

import plotly.graph_objects as go

from viz.figures.head_marks import CELLS, Cell, add_marks, frame
from viz.figures.heatmap import NUMBERED, Axis, Matrix, heatmap

HIGHEST = 640  # pixels
_LETTERS = 10  # size of the numbers, so that those of eight heads do not touch


def patch_map_figure(
    values: Matrix,
    *,
    rows: Axis,
    columns: Axis,
    title: str,
    words: Sequence[str],
    chosen: Sequence[Cell] = (),
    limit: float | None = None,
) -> go.Figure:
    """values (row, column): 0 is grey, NaN is empty. words: what hovering over each cell says, row by row, as
    Plotly may draw it. chosen: the framed cells. limit: end of the scale; None: the largest value.
    The trace "heads" has one point for each cell."""
    figure = heatmap(
        values,
        rows=rows,
        columns=columns,
        quantity="difference",
        limit=limit,
        words=None if values.shape[1] <= NUMBERED else (),
        height=min(max(32 * len(values) + 130, 220), HIGHEST),
    )
    figure.update_traces(selector={"mode": "text"}, textfont={"size": _LETTERS})
    picture = figure.data[-1]
    picture.update(hoverinfo="skip", hovertemplate=None, hovertext=None)
    picture.colorbar.title = {"text": title, "side": "right"}
    cells = [(row, column) for row in range(len(values)) for column in range(values.shape[1])]
    add_marks(figure, cells, CELLS, words=words, chosen=None)
    for cell in chosen:
        frame(figure, CELLS, cell)
    return figure
