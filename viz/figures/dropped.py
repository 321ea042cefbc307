"""Values after dropout, with a cross on those that were set to 0."""

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.figures.chart import marks
from viz.figures.heatmap import Axis, heatmap
from viz.notation.theme import MASKED, QuantityName

CROSSED = 64 * 64  # up to so many cells each zero has a cross; more crosses would touch


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

    blocked: True where a cell was never allowed: grey, and without a cross. limit: end of the
    colours, for weights always 1; values beyond it are counted on the picture.
    """
    figure = heatmap(
        values, rows=rows, columns=columns, quantity=quantity, blocked=blocked, limit=limit
    )
    zero = ~kept if blocked is None else ~kept & ~blocked
    crossed = values.size <= CROSSED
    if zero.any() and crossed:
        at_row, at_column = np.nonzero(zero)
        cross = {"symbol": "x-thin", "size": 8, "line": {"width": 1.5, "color": MASKED}}
        figure.add_trace(marks(at_column, at_row, name="set to 0", marker=cross, hover="set to 0"))
    said = ["×: set to 0" if crossed else "without colour: set to 0"]
    end = 1.0 if quantity == "weight" else limit
    beyond = 0 if end is None else int((np.abs(values) > end).sum())
    if beyond:
        said.append(f"colours end at {end:.3g}; {beyond:,} of {values.size:,} lie beyond")
    return figure.update_xaxes(title={"text": "<br>".join([columns.name, *said])})
