"""Tables of positions, and how alike positions are, as heatmaps."""

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.figures.heatmap import heatmap
from viz.figures.numbered import count_columns, count_rows, numbered
from viz.figures.token_rows import colour_end


def position_map(table: NDArray[np.floating], *, column_name: str, value_name: str) -> go.Figure:
    """table (position, column): one row a position."""
    rows, columns = table.shape
    end = colour_end(table)
    figure = heatmap(
        table,
        rows=numbered("position", rows),
        columns=numbered(column_name, columns),
        quantity="stream",
        limit=end.value,
        height=440,
    )
    figure.data[-1].update(
        hovertext=None,
        texttemplate=None,
        hovertemplate=f"position %{{y}}, {column_name} %{{x}}<br>{value_name} %{{z:.4f}}"
        "<extra></extra>",
    )
    count_columns(figure, column_name, columns, end)
    count_rows(figure, rows)
    return figure


def likeness_map(alike: NDArray[np.floating]) -> go.Figure:
    """alike (position, position) from -1 to 1."""
    count = len(alike)
    axis = numbered("position", count)
    figure = heatmap(alike, rows=axis, columns=axis, quantity="score", limit=1.0, height=460)
    figure.data[-1].update(
        hovertext=None,
        texttemplate=None,
        hovertemplate="positions %{y} and %{x}<br>likeness %{z:.4f}<extra></extra>",
    )
    count_columns(figure, "position", count)
    count_rows(figure, count)
    return figure
