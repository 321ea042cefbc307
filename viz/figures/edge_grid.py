"""Which query may attend to which key, as a grid of marks: a click cuts or restores an edge."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.figures.chart import marks
from viz.figures.heatmap import Axis, heatmap
from viz.notation.theme import LESS, MASKED, WEIGHT

CLICKED = 24  # up to so many queries and keys each edge has a mark
Mask = NDArray[np.bool_]


def edges(look: Mask, cut: Mask, *, queries: Sequence[str], keys: Sequence[str]) -> go.Figure:
    """look (query, key): whether the mask allows the edge; cut: whether it is cut.

    The last trace holds one mark a cell, row by row. Raises ValueError if sizes do not fit.
    """
    figure = heatmap(
        np.where(look, 0.35, 0.0).astype(np.float32),
        rows=Axis("query", queries),
        columns=Axis("key", keys),
        quantity="weight",
        blocked=~look,
        words=[[""] * len(keys)] * len(queries),
        height=min(20 * len(queries) + 90, 570),
    )
    figure.data[-1].showscale = False
    figure.update_traces(hoverinfo="skip", hovertemplate=None)
    row, column = (axis.ravel() for axis in np.indices(look.shape))
    state = np.where(cut, "cut", np.where(look, "may look", "already masked"))
    marker = {
        "symbol": np.where(cut, "x", "square").ravel().tolist(),
        "size": 14,
        "color": np.where(cut, LESS, np.where(look, WEIGHT, MASKED)).ravel().tolist(),
        "opacity": np.where(cut, 1.0, 0.25).ravel().tolist(),
    }
    hover = "query %{y}, key %{x}: %{text}"
    return figure.add_trace(
        marks(column, row, marker=marker, text=state.ravel().tolist(), hover=hover)
    )
