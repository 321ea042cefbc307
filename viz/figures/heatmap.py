"""A matrix as a heatmap: rows from the top down, positions labelled with tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from model.trace.records import Attention
from viz.figures.cell_text import STRONG, cell_text
from viz.figures.hatching import hatching
from viz.notation.labels import plotly_label, plotly_words, tick_positions
from viz.notation.theme import MASKED, QUANTITIES, QuantityName, colorscale, rgba

Matrix = NDArray[np.floating]
NUMBERED = 12  # up to so many columns the numbers stand in the cells
NARROW = 7  # the same for a narrow picture
HOVERED = 64 * 64  # up to so many cells each has its own words on hover
LABEL = 14  # characters
_TILE = rgba(MASKED, 0.1)
_PLAIN = [[0, _TILE], [1, _TILE]]
ON_DIVERGING = 0.7  # letters in the cells turn later where the scale is steepest at its ends
LEVEL = 6  # up to so many tokens above the columns lie level
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
    quantity: QuantityName | None,
    blocked: NDArray[np.bool_] | None = None,
    limit: float | None = None,
    decimals: int = 2,
    words: Sequence[Sequence[str]] | None = None,
    height: int | None = None,
) -> go.Figure:
    """values (row, column) as a heatmap. Weights lie on 0-1; all else diverges around 0.

    quantity None draws plain tiles, for numbers that no colour can compare. blocked: True where a
    cell is not allowed: drawn grey and hatched, without a number. limit: end of a diverging scale; None: the
    largest value. words: what stands in the cells, as Plotly may draw it; None: the numbers, where
    they fit. Equal labels keep their own rows and columns. The last trace is the heatmap itself.
    Raises ValueError if labels and values do not fit.
    """
    if values.shape != (len(rows.labels), len(columns.labels)):
        raise ValueError(
            f"{values.shape} values for {len(rows.labels)} rows, {len(columns.labels)} columns."
        )
    allowed = np.ones(values.shape, bool) if blocked is None else ~blocked
    shown = np.where(allowed & np.isfinite(values), values, np.nan).astype(np.float32)
    low, high = _range(shown, quantity, limit)
    traces: list[go.Heatmap | go.Scatter] = []
    shapes = []
    if blocked is not None and blocked.any():
        traces.append(_not_allowed(blocked))
        if max(values.shape) <= SEPARATED:
            shapes.append(hatching(blocked))
    fits = len(columns.labels) <= NUMBERED and len(rows.labels) <= NUMBERED
    if words is None and fits:
        words = [[f"{value:,.{decimals}f}" for value in row] for row in shown]
    if words is not None:
        traces += cell_text(words, _strength(shown, high, quantity), strong=_strong(quantity))
    traces.append(_cells(shown, quantity, (low, high), _hover(shown, rows, columns)))
    # In one go: to update a figure takes Plotly ten times as long as to make it.
    return go.Figure(traces, _layout(rows, columns, height) | {"shapes": shapes})


def _cells(
    shown: Matrix,
    quantity: QuantityName | None,
    limits: tuple[float, float],
    hover: dict[str, object],
) -> go.Heatmap:
    """The heatmap itself; what is not shown is a gap."""
    return go.Heatmap(
        z=shown,
        zmin=limits[0],
        zmax=limits[1],
        colorscale=_PLAIN if quantity is None else colorscale(quantity),
        showscale=quantity is not None,
        colorbar={"thickness": 10, "outlinewidth": 0, "nticks": 5},
        xgap=1 if shown.shape[1] <= SEPARATED else 0,
        ygap=1 if shown.shape[0] <= SEPARATED else 0,
        hoverongaps=False,
        **hover,
    )


def _layout(rows: Axis, columns: Axis, height: int | None) -> dict[str, object]:
    """The first row on top, the columns' labels above it."""
    steep = {"tickangle": -60} if columns.tokens and len(columns.labels) > LEVEL else {}
    above = {"side": "top", "range": [-0.5, len(columns.labels) - 0.5]}
    return {
        "xaxis": _axis(columns) | above | steep,
        "yaxis": _axis(rows) | {"range": [len(rows.labels) - 0.5, -0.5]},
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "height": height or min(max(26 * len(rows.labels) + 110, 200), 620),
    }


def weights_of_head(
    attention: Attention,
    head: int,
    *,
    queries: Sequence[str],
    keys: Sequence[str],
    fitting: int = NUMBERED,
) -> go.Figure:
    """One head's weights: row = query, column = key, rows sum to 1, the masked future grey.

    fitting: with more columns no cell holds a number.
    """
    mask = attention.mask
    crowded = fitting < len(keys) <= NUMBERED
    return heatmap(
        attention.weights(head),
        rows=Axis("query", queries),
        columns=Axis("key", keys),
        quantity="weight",
        blocked=None if mask is None else ~mask,
        words=[[""] * len(keys)] * len(queries) if crowded else None,
    )


def _range(
    shown: Matrix, quantity: QuantityName | None, limit: float | None
) -> tuple[float, float]:
    if quantity is not None and not QUANTITIES[quantity].diverging:
        return 0.0, 1.0
    finite = shown[np.isfinite(shown)]
    end = limit or (float(np.abs(finite).max()) if finite.size else 0.0) or 1.0
    return -end, end


def _not_allowed(blocked: NDArray[np.bool_]) -> go.Heatmap:
    grey = rgba(MASKED, 0.14 if max(blocked.shape) <= SEPARATED else 0.35)
    return go.Heatmap(
        z=np.where(blocked, 1.0, np.nan).astype(np.float32),
        colorscale=[[0, grey], [1, grey]],
        showscale=False,
        hovertemplate="not allowed<extra></extra>",
        hoverongaps=False,
        xgap=1,
        ygap=1,
    )


def _strength(shown: Matrix, high: float, quantity: QuantityName | None) -> Matrix:
    """How strong each cell's colour is, 0-1; NaN where there is none."""
    full = np.abs(shown) / high
    return full * 0 if quantity is None else full


def _strong(quantity: QuantityName | None) -> float:
    """From which strength on letters stand on more colour than page."""
    return ON_DIVERGING if quantity and QUANTITIES[quantity].diverging else STRONG


def _hover(shown: Matrix, rows: Axis, columns: Axis) -> dict[str, object]:
    """What hovering says: the number, and where there are not too many cells, where it stands."""
    if shown.size > HOVERED:
        return {"hovertemplate": "%{z:.4f}<extra></extra>"}
    down = [f"{rows.name} {rows.label(row)}" for row in range(len(rows.labels))]
    along = [f"{columns.name} {columns.label(column)}" for column in range(len(columns.labels))]
    places = np.array([[f"{row}, {column}" for column in along] for row in down], object)
    return {"hovertext": places, "hovertemplate": "%{hovertext}<br>%{z:.4f}<extra></extra>"}


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
