"""One number for each head: rows are layers, columns heads, each cell can be clicked."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from viz.figures.head_marks import CELLS, Cell, add_marks
from viz.figures.heatmap import NUMBERED, Axis, Matrix, heatmap
from viz.theme import QUANTITIES, QuantityName, rgba


def head_map(
    values: Matrix,
    *,
    quantity: QuantityName,
    title: str,
    chosen: Cell | None,
    words: Sequence[str],
    decimals: int = 2,
) -> go.Figure:
    """values (layer, head) as colours and, where they fit, numbers.

    quantity "weight" runs from 0 to 1, "difference" diverges around 0, any other runs from 0 to the
    largest value. title: what the numbers are, above the colour bar. words: what hovering over each
    head says, layer by layer, as Plotly may draw it. The trace "heads" has one point for each head.
    """
    layers, heads = values.shape
    fits = heads <= NUMBERED
    figure = heatmap(
        values,
        rows=Axis("layer", [str(layer) for layer in range(layers)], tokens=False),
        columns=Axis("head", [str(head) for head in range(heads)], tokens=False),
        quantity=quantity,
        words=[[_short(value, decimals) for value in row] for row in values] if fits else None,
        height=min(max(34 * layers + 110, 220), 800),
    )
    picture = figure.data[-1]
    picture.update(hoverinfo="skip", hovertemplate=None, hovertext=None)
    picture.colorbar.title = {"text": title, "side": "right"}
    if quantity not in ("weight", "difference"):
        hue = QUANTITIES[quantity].hue
        picture.update(zmin=0, colorscale=[[0, rgba(hue, 0.0)], [1, rgba(hue, 1.0)]])
    cells = [(layer, head) for layer in range(layers) for head in range(heads)]
    add_marks(figure, cells, CELLS, words=words, chosen=chosen)
    return figure


def _short(value: float, decimals: int) -> str:
    """A number that fits into a cell: no minus sign on what rounds to nothing."""
    rounded = round(float(value), decimals) + 0.0
    return "" if np.isnan(rounded) else f"{rounded:,.{decimals}f}"
