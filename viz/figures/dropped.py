"""Values after dropout: those that were set to 0 carry a cross."""

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.figures.heatmap import Axis, heatmap
from viz.theme import MASKED, QuantityName

CROSSED = 64 * 64  # cells up to which each zero has its cross; in larger pictures they would touch


def after_dropout(
    values: NDArray[np.floating],
    kept: NDArray[np.bool_],
    *,
    rows: Axis,
    columns: Axis,
    quantity: QuantityName,
    blocked: NDArray[np.bool_] | None = None,
    limit: float | None = None,
) -> go.Figure:
    """values (row, column) after dropout; kept: False where one was set to 0.

    blocked: True where a cell was never allowed: grey, and without a cross.
    """
    figure = heatmap(
        values, rows=rows, columns=columns, quantity=quantity, blocked=blocked, limit=limit
    )
    zero = ~kept if blocked is None else ~kept & ~blocked
    crossed = values.size <= CROSSED
    if zero.any() and crossed:
        at_row, at_column = np.nonzero(zero)
        figure.add_trace(
            go.Scatter(
                name="set to 0",
                x=at_column,
                y=at_row,
                mode="markers",
                marker={"symbol": "x-thin", "size": 8, "line": {"width": 1.5, "color": MASKED}},
                hovertemplate="set to 0<extra></extra>",
                showlegend=False,
            )
        )
    figure.update_xaxes(title={"text": _named(columns.name, values, quantity, crossed=crossed)})
    return figure


def _named(
    name: str, values: NDArray[np.floating], quantity: QuantityName, *, crossed: bool
) -> str:
    zeros = "×: set to 0" if crossed else "what was set to 0 is white"
    above = int((values > 1).sum()) if quantity == "weight" else 0
    clipped = f"; weights above 1 are drawn as 1 ({above:,} here)" if above else ""
    return f"{name}<br>{zeros}{clipped}"
