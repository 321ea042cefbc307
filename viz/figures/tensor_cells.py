"""A tensor of up to four axes as cells, each with its number, and its memory as a row of them."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.figures.chart import Axis
from viz.figures.heatmap import heatmap
from viz.figures.room import counted_margins
from viz.figures.squares import ABOVE, BELOW
from viz.notation.numbers import signed
from viz.notation.theme import QuantityName

Numbers = NDArray[np.generic]
CELL, _EDGE = 40, 8  # pixels of the largest cell, and below the cells
_LINE, _AROUND = 34, 80  # pixels of a row of memory, and around all


def tensor_cells(
    values: Numbers, axes: Sequence[str], quantity: QuantityName, *, limit: float
) -> go.Figure:
    """values, of three or four axes: the last two are rows and columns of a block, the first runs down the
    blocks, the second of four across them. axes: their names. Cells of −∞ are grey.
    """
    table = values.astype(np.float64).reshape(len(values), -1, *values.shape[-2:])
    down, across, rows, columns = table.shape
    lies = np.full((down * (rows + 1) - 1, across * (columns + 1) - 1), np.nan)
    for i, j in np.ndindex(down, across):
        at, to = i * (rows + 1), j * (columns + 1)
        lies[at : at + rows, to : to + columns] = table[i, j]
    alone = values.ndim == 3
    figure = _cells(
        lies,
        Axis(f"{axes[0]}, {axes[-2]}", _labels(down, rows), tokens=False),
        Axis(
            axes[-1] if alone else f"{axes[1]}, {axes[-1]}",
            [str(one) for one in range(columns)] if alone else _labels(across, columns),
            tokens=False,
        ),
        quantity,
        limit,
        square=True,
    )
    small = min(figure.layout.height - BELOW, CELL * len(lies) + ABOVE)
    return figure.update_layout(height=small, margin_b=_EDGE)


def equal_cells(figures: Sequence[go.Figure]) -> None:
    """Gives the cells of all figures of `tensor_cells` one size, in places of one width."""
    rows = max(figure.layout.yaxis.range[0] for figure in figures)
    columns = max(figure.layout.xaxis.range[1] for figure in figures)
    for figure in figures:
        figure.update_xaxes(range=[-0.5, columns], showline=False, tickangle=-90)
        figure.update_yaxes(range=[rows, -0.5], showline=False, scaleratio=1)
        above = (counted_margins(figure) or {}).get("t", ABOVE)
        figure.update_layout(height=CELL * (rows + 0.5) + above + _EDGE)


def memory_cells(
    memories: Mapping[str, Numbers], quantity: QuantityName, *, limit: float
) -> go.Figure:
    """The numbers of each memory in the order of their places. A shorter one ends early."""
    longest = max(map(len, memories.values()))
    table = np.full((len(memories), longest), np.nan)
    for row, memory in zip(table, memories.values(), strict=True):
        row[: len(memory)] = memory
    places = [str(place) for place in range(longest)]
    figure = _cells(
        table,
        Axis("", list(memories), tokens=False),
        Axis("place in memory", places, tokens=False),
        quantity,
        limit,
        height=_LINE * len(memories) + _AROUND,
    )
    return figure.update_xaxes(tickangle=0)


def _labels(blocks: int, count: int) -> list[str]:
    """Block and place within it, nothing between two blocks."""
    groups = [[f"{block}, {at}" for at in range(count)] for block in range(blocks)]
    return [label for group in groups for label in ("", *group)][1:]


def _cells(
    values: NDArray[np.float64],
    rows: Axis,
    columns: Axis,
    quantity: QuantityName,
    limit: float,
    *,
    height: int | None = None,
    square: bool = False,
) -> go.Figure:
    known = np.isfinite(values)
    whole = bool((values[known] % 1 == 0).all())
    words = [
        [signed(f"{value:.{0 if whole else 2}f}") if np.isfinite(value) else "" for value in row]
        for row in values
    ]
    figure = heatmap(
        values,
        rows=rows,
        columns=columns,
        quantity=quantity,
        blocked=np.isneginf(values),
        limit=limit,
        words=words,
        height=height,
        square=square,
    )
    figure.data[-1].showscale = False
    return figure
