"""A matrix as a heatmap: rows from the top down, positions labelled with tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from model.trace import Attention
from viz.axes import plotly_label, plotly_words, tick_positions
from viz.theme import MASKED, QUANTITIES, QuantityName, colorscale, rgba

Matrix = NDArray[np.floating]
NUMBERED = 12  # up to so many columns the numbers stand in the cells
HOVERED = 64 * 64  # up to so many cells each has its own words on hover
LABEL = 14  # characters
SEPARATED = 32  # up to so many rows and columns the cells stand apart


@dataclass(frozen=True)
class Axis:
    """One side of a heatmap: its name and a label for each position, tokens or plain words."""

    name: str
    labels: Sequence[str]
    tokens: bool = True  # whether spaces and the like are made visible

    def label(self, position: int) -> str:
        """One label as Plotly may draw it."""
        text = self.labels[position]
        return plotly_label(text, LABEL) if self.tokens else plotly_words(text)


def heatmap(
    values: Matrix,
    *,
    rows: Axis,
    columns: Axis,
    quantity: QuantityName,
    blocked: NDArray[np.bool_] | None = None,
    limit: float | None = None,
    decimals: int = 2,
    height: int | None = None,
) -> go.Figure:
    """values (row, column) as a heatmap. Weights lie on 0-1; all else diverges around 0.

    blocked: True where a cell is not allowed: drawn grey, without a number. limit: end of a
    diverging scale; None: the largest value. Equal labels keep their own rows and columns.
    Raises ValueError if labels and values do not fit.
    """
    if values.shape != (len(rows.labels), len(columns.labels)):
        raise ValueError(
            f"{values.shape} values for {len(rows.labels)} rows, {len(columns.labels)} columns."
        )
    allowed = np.ones(values.shape, bool) if blocked is None else ~blocked
    shown = np.where(allowed & np.isfinite(values), values, np.nan).astype(np.float32)
    low, high = _range(shown, quantity, limit)
    figure = go.Figure()
    if blocked is not None and blocked.any():
        figure.add_trace(_not_allowed(blocked))
    figure.add_trace(
        go.Heatmap(
            z=shown,
            zmin=low,
            zmax=high,
            colorscale=colorscale(quantity),
            colorbar={"thickness": 10, "outlinewidth": 0, "nticks": 5},
            xgap=1 if values.shape[1] <= SEPARATED else 0,
            ygap=1 if values.shape[0] <= SEPARATED else 0,
            hoverongaps=False,
            **_words(shown, rows, columns, decimals),
        )
    )
    figure.update_xaxes(**_axis(columns), side="top")
    figure.update_yaxes(**_axis(rows), autorange="reversed")
    figure.update_layout(
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        height=height or min(max(26 * len(rows.labels) + 110, 200), 620),
    )
    return figure


def weights_of_head(
    attention: Attention, head: int, *, queries: Sequence[str], keys: Sequence[str]
) -> go.Figure:
    """One head's weights: row = query, column = key, rows sum to 1, the masked future grey."""
    mask = attention.mask
    return heatmap(
        attention.weights(head),
        rows=Axis("query", queries),
        columns=Axis("key", keys),
        quantity="weight",
        blocked=None if mask is None else ~mask,
    )


def _range(shown: Matrix, quantity: QuantityName, limit: float | None) -> tuple[float, float]:
    if not QUANTITIES[quantity].diverging:
        return 0.0, 1.0
    finite = shown[np.isfinite(shown)]
    end = limit or (float(np.abs(finite).max()) if finite.size else 0.0) or 1.0
    return -end, end


def _not_allowed(blocked: NDArray[np.bool_]) -> go.Heatmap:
    grey = rgba(MASKED, 0.35)
    return go.Heatmap(
        z=np.where(blocked, 1.0, np.nan).astype(np.float32),
        colorscale=[[0, grey], [1, grey]],
        showscale=False,
        hovertemplate="not allowed<extra></extra>",
        hoverongaps=False,
        xgap=1,
        ygap=1,
    )


def _words(shown: Matrix, rows: Axis, columns: Axis, decimals: int) -> dict[str, object]:
    """What hovering says, and the numbers in the cells where they fit."""
    template: dict[str, object] = {"hovertemplate": "%{z:.4f}<extra></extra>"}
    if shown.size <= HOVERED:
        words = [
            [
                f"{rows.name} {rows.label(row)}, {columns.name} {columns.label(column)}"
                for column in range(len(columns.labels))
            ]
            for row in range(len(rows.labels))
        ]
        template = {"hovertext": words, "hovertemplate": "%{hovertext}<br>%{z:.4f}<extra></extra>"}
    if len(columns.labels) <= NUMBERED and len(rows.labels) <= NUMBERED:
        template["texttemplate"] = f"%{{z:,.{decimals}f}}"
    return template


def _axis(axis: Axis) -> dict[str, object]:
    ticks = tick_positions(len(axis.labels))
    return {
        "title": {"text": axis.name},
        "tickvals": ticks,
        "ticktext": [axis.label(position) for position in ticks],
        "showgrid": False,
        "zeroline": False,
        "tickfont": {"family": "monospace"},
    }
