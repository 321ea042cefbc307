"""One token's vector times one head's matrix: x above, the matrix below it, and the products of one entry."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.figures.chart import BARE, MONOSPACED, chart, marks, titled
from viz.figures.token_rows import ColourEnd, colour_end
from viz.notation.labels import dimension_ticks
from viz.notation.numbers import signed
from viz.notation.theme import MASKED, QUANTITIES, QuantityName, vector_scale

Vectors = NDArray[np.floating]
_TICKS = 6  # numbers along the dimensions
_HIGH = 460  # pixels
_STRIP, _GAP = (
    0.09,
    0.045,
)  # height of x and of the products, and between them, by that of the matrix
_BESIDE, _COLUMN = 0.02, 0.05  # between the columns on the right, and their width, by that of x


def projection(
    x: Vectors,
    matrix: Vectors,
    bias: Vectors,
    sums: Vectors,
    *,
    dimension: int,
    marked: Sequence[int],
    quantity: QuantityName,
    letters: tuple[str, str],
) -> go.Figure:
    """x (d_model,), a head's matrix (d_k, d_model) with its bias (d_k,), and what they make of x, sums
    (d_k,). Each column of the matrix stands below the number of x that it is multiplied by. A bias of zero
    is not drawn.

    dimension: the entry whose row is framed and whose products stand at the bottom. marked: the columns
    of products that get a mark. letters: of the result and of the matrix: "q", "W_Q".
    """
    letter, name = letters
    width, wide = len(sums), len(x)
    strip, first = _STRIP * width, (_STRIP + _GAP) * width  # first: the matrix's upper edge
    bottom = first + (1 + _GAP) * width + strip / 2
    products = matrix[dimension] * x
    beside = {"b": bias, letter: sums} if bias.any() else {letter: sums}
    values = {"x": x, name: matrix, "products": products, **beside}
    ends = {each: colour_end(numbers) for each, numbers in values.items()}
    hue, rows = QUANTITIES[quantity].hue, {"y0": first + 0.5, "dy": 1}
    columns = {
        each: wide * (1 + (_BESIDE + _COLUMN) * number) - _COLUMN * wide / 2 - 0.5
        for number, each in enumerate(beside, 1)
    }
    traces = [
        _cells(x[None], QUANTITIES["stream"].hue, ends, "x", y0=strip / 2, dy=strip),
        _cells(matrix, hue, ends, name, **rows),
        _cells(products[None], hue, ends, "products", y0=bottom, dy=strip),
        *(
            _cells(numbers[:, None], hue, ends, each, x0=columns[each], dx=_COLUMN * wide, **rows)
            for each, numbers in beside.items()
        ),
        _marks_above(marked, products, bottom - (strip + _GAP * width) / 2),
    ]
    chosen, right = first + dimension + 0.5, columns[letter] + _COLUMN * wide / 2
    names = {strip / 2: "x", chosen: f"{name}, {dimension}", bottom: "products"}
    down = {"tickvals": list(names), "ticktext": list(names.values()), "tickfont": MONOSPACED}
    down = BARE | down | {"range": [bottom + strip / 2, 0]}
    beyond = ColourEnd.several(ends.values())
    figure = chart(traces, _across(wide, columns, right, beyond), down, height=_HIGH)
    edges = {"y0": chosen - 0.5, "y1": chosen + 0.5, "x0": -0.5, "x1": right}
    return figure.add_shape(type="rect", line={"color": MASKED, "width": 1.5}, **edges)


def _cells(
    values: Vectors, hue: str, ends: Mapping[str, ColourEnd], name: str, **places: float
) -> go.Heatmap:
    end = ends[name].value
    return go.Heatmap(
        z=values.astype(np.float32),
        zmin=-end,
        zmax=end,
        colorscale=vector_scale(hue),
        showscale=False,
        showlegend=False,
        name=name,
        hovertemplate=f"{name}<br>%{{z:.4f}}<br>{ends[name].short}<extra></extra>",
        **places,
    )


def _marks_above(columns: Sequence[int], products: Vectors, y: float) -> go.Scatter:
    """A small triangle over each of these products."""
    return marks(
        list(columns),
        [y] * len(columns),
        name="written out",
        text=[signed(f"{products[column]:.4f}") for column in columns],
        hover="dimension %{x}, in the formula<br>%{text}",
        marker={"symbol": "triangle-down", "size": 9, "color": MASKED},
    )


def _across(
    wide: int, columns: Mapping[str, float], right: float, beyond: str
) -> dict[str, object]:
    ticks = list(dimension_ticks(wide, _TICKS))
    return BARE | titled(
        f"dimension of x (each strip has its own scale){beyond}",
        tickvals=[*ticks, *columns.values()],
        ticktext=[*map(str, ticks), *columns],
        tickfont=MONOSPACED,
        tickangle=0,
        range=[-0.5, right],
    )
