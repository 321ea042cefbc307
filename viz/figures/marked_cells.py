"""Heatmaps with marks on their cells: edges that can be cut, values that dropout set to 0."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.figures.chart import marks
from viz.figures.heatmap import Axis, heatmap, queries_by_keys
from viz.notation.theme import LESS, MASKED, WEIGHT, QuantityName

CLICKED = 24  # up to so many queries and keys each edge has a mark
Mask = NDArray[np.bool_]


def edges(look: Mask, cut: Mask, *, queries: Sequence[str], keys: Sequence[str]) -> go.Figure:
    """look (query, key): whether the mask allows the edge; cut: whether it is cut.

    The last trace holds one mark a cell, row by row. Raises ValueError if sizes do not fit.
    """
    values = np.where(look, 0.35, 0.0).astype(np.float32)
    figure = queries_by_keys(values, queries, keys, blocked=~look, words=())
    figure.data[-1].showscale = False
    figure.update_traces(hoverinfo="skip", hovertemplate=None)
    row, column = (axis.ravel() for axis in np.indices(look.shape))
    state = np.where(cut, "cut", np.where(look, "may attend", "already masked"))
    marker = {
        "symbol": np.where(cut, "x", "square").ravel().tolist(),
        "size": 14,
        "color": np.where(cut, LESS, np.where(look, WEIGHT, MASKED)).ravel().tolist(),
        "opacity": np.where(cut, 1.0, 0.25).ravel().tolist(),
    }
    said = [
        f"query {query} {queries[query]}, key {key} {keys[key]}: {state[query, key]}"
        for query, key in np.ndindex(look.shape)
    ]
    return figure.add_trace(marks(column, row, marker=marker, text=said, hover="%{text}"))


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
        values,
        rows=rows,
        columns=columns,
        quantity=quantity,
        blocked=blocked,
        limit=limit,
        square=quantity == "weight",
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
        count = values.size if blocked is None else int((~blocked).sum())
        said.append(
            f"the colour scale ends at {end:.3g};<br>{beyond:,} of {count:,} values lie beyond it"
        )
    return figure.update_xaxes(title={"text": "<br>".join([columns.name, *said])})
