"""One number for each head: rows are layers, columns heads, each cell can be clicked."""

import math
import re
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from viz.figures.head_marks import CELLS, Cell, add_marks
from viz.figures.heatmap import NUMBERED, Axis, Matrix, heatmap
from viz.notation.numbers import signed
from viz.notation.theme import QUANTITIES, QuantityName, rgba

ROOMY = 8  # up to so many heads in a layer the numbers have room
SMALL = 10  # size of the numbers where they have less room
LEADING_NOUGHT = re.compile(r"(?<!\d)0\.")


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
    figure = heatmap(
        values,
        rows=Axis("layer", [str(layer) for layer in range(layers)], tokens=False),
        columns=Axis("head", [str(head) for head in range(heads)], tokens=False),
        quantity=quantity,
        words=_words(values, decimals) if heads <= NUMBERED else None,
        height=min(max(34 * layers + 110, 220), 800),
    )
    if heads > ROOMY:
        figure.update_traces(selector={"mode": "text"}, textfont={"size": SMALL})
    picture = figure.data[-1]
    picture.update(hoverinfo="skip", hovertemplate=None, hovertext=None)
    picture.colorbar.title = {"text": title, "side": "right"}
    if quantity not in ("weight", "difference"):
        hue = QUANTITIES[quantity].hue
        picture.update(zmin=0, colorscale=[[0, rgba(hue, 0.0)], [1, rgba(hue, 1.0)]])
    cells = [(layer, head) for layer in range(layers) for head in range(heads)]
    add_marks(figure, cells, CELLS, words=words, chosen=chosen)
    return figure


def _words(values: Matrix, decimals: int) -> list[list[str]]:
    """The numbers of all cells, shorter where there are many columns."""
    if values.shape[1] <= ROOMY:
        return [[_number(value, decimals) for value in row] for row in values.tolist()]
    decimals = 1 if np.nanmax(np.abs(values), initial=0.0) >= 10 else 2
    written = [[_number(value, decimals) for value in row] for row in values.tolist()]
    return [[LEADING_NOUGHT.sub(".", word) for word in row] for row in written]


def _number(value: float, decimals: int) -> str:
    """A number, never "-0.00"; nothing for NaN."""
    return "" if math.isnan(value) else signed(f"{value:,.{decimals}f}")
