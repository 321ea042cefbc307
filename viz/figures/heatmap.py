"""A matrix as a heatmap: rows from the top down, positions labelled with tokens."""

import math
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from model.trace.blocks import CellBlock, block_of, largest_of_blocks, shown_weights
from model.trace.records import Attention
from viz.figures.chart import MONOSPACED, SLANTED, Axis, chart, frame, marks, note
from viz.figures.room import BELOW, LARGE, MARGIN, SCALE, TALLEST, TITLE_LINE, Squares
from viz.notation.numbers import signed
from viz.notation.theme import INK, MASKED, PAPER, QUANTITIES, QuantityName, colorscale, rgba
from viz.notation.words import sentences_of

say = sentences_of("figures.heatmap")

Matrix = NDArray[np.floating]
NUMBERED = 12  # up to so many columns the cells show their numbers
NARROW = 7  # the same for a narrow figure
HOVERED = 64 * 64  # up to so many cells hovering names the row and column
STRONG = 0.55  # of the full colour: on stronger cells, text has the colour of the page
_TILE = rgba(MASKED, 0.1)
ON_DIVERGING = 0.7  # the same as STRONG for diverging scales, which are steepest at their ends
_NEAR_ZERO = 0.5  # of a scale's end
LEVEL = 6  # up to so many tokens above the columns are written level
HATCHED = 4096  # runs of masked cells that are hatched at most
_SENTENCE = 34  # pixels of the two lines that say what a cell stands for
TILES_APART = 1  # pixels between cells without colours
SINK = "sink"  # the last column of a head that has one, in a frame of dashes: it is no key


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
    square: bool = False,
    block: CellBlock = (1, 1),
) -> go.Figure:
    """values (row, column) as a heatmap. Weights lie on 0-1; all else diverges around 0.

    A matrix of more cells than a figure shows is drawn in blocks, each as its number of largest size; the
    figure says so, and its axes still count rows and columns. The last trace is the heatmap itself.

    Args:
        rows, columns: the axes. Equal labels keep their own rows and columns.
        quantity: whose colours; None draws plain tiles, for numbers that no colour can compare.
        blocked: True where a cell is masked: drawn grey and hatched, without a number.
        limit: end of a diverging scale; None: the largest value.
        decimals: of the numbers in the cells.
        words: what stands in the cells, as Plotly may draw it; None: numbers, where they fit; (): nothing.
        height: in pixels; None: as many rows need.
        square: cells as high as wide, as in the explorer; else they fill the width.
        block: rows and columns of each value, where values come in blocks already.

    Raises ValueError if labels and values do not fit.
    """
    shape = len(rows.labels), len(columns.labels)
    if values.shape != tuple(-(-size // of) for size, of in zip(shape, block, strict=True)):
        raise ValueError(f"{values.shape} values for {shape[0]} rows, {shape[1]} columns.")
    hidden = ~np.isfinite(values) if blocked is None else blocked | ~np.isfinite(values)
    shown = np.where(hidden, np.float32("nan"), values.astype(np.float32, copy=False))
    if block == (1, 1) != block_of(*shape):
        block = block_of(*shape)
        shown = largest_of_blocks(shown, block)
        blocked = None if blocked is None else ~largest_of_blocks(~blocked, block)
    words = () if block != (1, 1) else words
    diverging = quantity is None or QUANTITIES[quantity].diverging
    end = (limit or float(np.nanmax(np.abs(shown), initial=0.0)) or 1.0) if diverging else 1.0
    if words is None and max(shape) <= NUMBERED:
        words = numbers_in_cells(shown, decimals)
    above = columns.across(range=[-0.5, len(columns.labels) - 0.5], side="top")
    down = rows.down()
    layout = Squares.of(shape, above, down) if square else None
    traces = _masked(blocked, block)
    if words:
        strength = shown * 0 if quantity is None else np.abs(shown) / end
        strong = ON_DIVERGING if quantity and diverging else STRONG
        size = layout.number_size(words) if layout else LARGE
        traces += cell_text(words, strength, strong=strong, size=size) if size else []
    traces.append(
        _cells(
            shown,
            colorscale(quantity) if quantity else [[0, _TILE], [1, _TILE]],
            zmin=-end if diverging else 0.0,
            zmax=end,
            showscale=quantity is not None,
            colorbar=SCALE | {"thickness": 10, "outlinewidth": 0} | _ends(end, diverging),
            **dict.fromkeys(("xgap", "ygap"), TILES_APART if quantity is None else 0),
            **_hover(shown, rows, columns, block),
            **_places(block),
        )
    )
    if layout:
        above, down = layout.axes(above, down)
        figure = chart(traces, above, down, height=layout.height, margin=MARGIN)
    else:
        if columns.tokens and len(columns.labels) > LEVEL:
            above["tickangle"] = SLANTED
        height = height or min(max(26 * len(rows.labels) + 130, 200), TALLEST)
        figure = chart(traces, above, down, height=height)
        if quantity is not None:
            figure.layout.margin.b = BELOW
    return figure if block == (1, 1) else _in_blocks(figure, block, is_positive=not diverging)


def _ends(end: float, diverging: bool) -> dict[str, object]:
    """The numbers at a colour scale: where it ends, and its middle."""
    if not diverging:
        return {"tickvals": [0.0, 0.5, 1.0], "ticktext": ["0", "0.5", "1"]}
    ticks = [-end, 0.0, end]
    return {"tickvals": ticks, "ticktext": [signed(f"{tick:.3g}") for tick in ticks]}


def headed(figure: go.Figure, title: str) -> go.Figure:
    """The same heatmap, with a title above the one of its columns."""
    columns = figure.layout.xaxis
    columns.title.text = f"<b>{title}</b><br>{columns.title.text}"
    figure.layout.height += round(TITLE_LINE)
    return figure


def framed(figure: go.Figure, rows: Sequence[int], columns: Sequence[int]) -> go.Figure:
    """The same heatmap with a frame around the cells that the words beside it name, from the first of these
    rows and columns to the last."""
    cells = next(one for one in figure.data if one.type == "heatmap" and one.showscale is not False)
    high, wide = int(cells.dy or 1), int(cells.dx or 1)
    top, left = rows[0] // high * high - 0.5, columns[0] // wide * wide - 0.5
    bottom, right = (rows[-1] // high + 1) * high - 0.5, (columns[-1] // wide + 1) * wide - 0.5
    for colour, width in ((PAPER, 6), (INK, 2)):  # seen on faint and on strong cells
        frame(figure, (left, right, top, bottom), colour, width)
    return figure


def fitted_scale(figure: go.Figure, quantity: QuantityName, lowest: float) -> go.Figure:
    """The figure of `heatmap` with a diverging scale that begins at the lowest value, where that lies near
    0. Colours stay as they were."""
    (cells,) = (one for one in figure.data if one.type == "heatmap" and one.showscale is not False)
    share = min(lowest, 0.0) / cells.zmax
    if share > -_NEAR_ZERO:
        colours = colorscale(quantity, lowest=share)
        cells.update(zmin=share * cells.zmax, colorscale=colours)
    return figure


def weights_of_head(
    attention: Attention,
    head: int,
    *,
    queries: Sequence[str],
    keys: Sequence[str],
    fitting: int = NUMBERED,
    cell: tuple[int, int] | None = None,
) -> go.Figure:
    """One head's weights: row = query, column = key, the masked future grey. What a learned sink takes
    stands in a column of its own, so rows sum to 1.

    Args:
        fitting: with more columns no cell holds a number.
        cell: query and key that the words beside it name; they stand in a frame.
    """
    has_sink = attention.sinks is not None
    block = block_of(len(queries), len(keys) + has_sink)
    weights, blocked = shown_weights(attention, head, block)
    if has_sink:  # it has whole blocks to itself
        taken = attention.sink_weights(head)[:, None]
        weights = np.column_stack([weights, largest_of_blocks(taken, (block[0], 1))])
        blocked = None if blocked is None else np.pad(blocked, ((0, 0), (0, 1)))
        keys = [*keys, *[""] * (-len(keys) % block[1]), *[SINK] * block[1]]
    figure = heatmap(
        weights,
        rows=Axis("query", queries),
        columns=Axis("key", keys),
        quantity="weight",
        blocked=blocked,
        words=() if fitting < len(keys) <= NUMBERED else None,
        square=True,
        block=block,
    )
    if has_sink:
        left, right = len(keys) - block[1] - 0.5, len(keys) - 0.5
        frame(figure, (left, right, -0.5, len(queries) - 0.5), MASKED, 1.5, "dash")
    return figure if cell is None else framed(figure, cell[:1], cell[1:])


def cell_text(
    words: Sequence[Sequence[str]],
    strength: NDArray[np.floating],
    *,
    strong: float = STRONG,
    size: float = LARGE,
) -> list[go.Scatter]:
    """Two traces of text for cells (row, column): on faint and on strong colours.

    Plotly draws them above its heatmaps. The colour that Plotly itself would choose suits only a white page.

    Args:
        words: of each cell; they may hold Plotly's tags.
        strength: how strong each cell's colour is, 0 to 1; NaN cells stay empty.
        strong: from where on it is strong.
        size: of the letters, in pixels.
    """
    full = strength > strong
    faint = ~full & ~np.isnan(strength)
    return [
        marks(
            cells[:, 1],
            cells[:, 0],
            mode="text",
            text=[words[row][column] for row, column in cells],
            textfont=MONOSPACED | {"color": colour, "size": size},
        )
        for cells, colour in ((np.argwhere(faint), INK), (np.argwhere(full), PAPER))
    ]


def numbers_in_cells(values: Matrix, decimals: int) -> list[list[str]]:
    """The numbers of cells (row, column) with a true minus sign, never "-0.00"; "" for what is not finite."""
    return [
        [signed(f"{value:,.{decimals}f}") if math.isfinite(value) else "" for value in row]
        for row in values.tolist()
    ]


def _cells(values: Matrix, colours: object, **more: object) -> go.Heatmap:
    """A heatmap that leaves NaN empty."""
    return go.Heatmap(z=values, colorscale=colours, hoverongaps=False, **more)


def _masked(blocked: NDArray[np.bool_] | None, block: CellBlock) -> list[go.Heatmap | go.Scatter]:
    """Grey cells, and slanting lines over them as in the explorer, so that colour alone need not say it;
    nothing where no cell is masked. More runs of masked cells than `HATCHED` are narrower than the lines:
    those stay grey."""
    if blocked is None or not blocked.any():
        return []
    grey = rgba(MASKED, 0.14)
    says = {"showscale": False, "hovertemplate": "masked<extra></extra>"}
    closed = np.where(blocked, np.float32(1), np.float32("nan"))
    cells = _cells(closed, [[0, grey], [1, grey]], **says, **_places(block))
    edges = np.diff(np.pad(blocked, ((0, 0), (1, 1))).astype(np.int8))
    starts, ends = np.argwhere(edges == 1)[:HATCHED], np.argwhere(edges == -1)[:HATCHED, 1]
    left, right = starts[:, 1] * block[1] - 0.5, ends * block[1] - 0.5
    top = starts[:, 0] * block[0] - 0.5
    bottom, gap = top + block[0], np.full(len(top), np.nan)
    lines = {"shape": "/", "size": 6, "solidity": 0.16, "fgcolor": rgba(MASKED, 0.55)}
    hatching = marks(
        np.stack([left, right, right, left, gap], 1).ravel(),
        np.stack([top, top, bottom, bottom, gap], 1).ravel(),
        mode="none",
        fill="toself",
        fillpattern=lines | {"bgcolor": rgba(MASKED, 0.0)},
    )
    return [cells, hatching]


def _hover(shown: Matrix, rows: Axis, columns: Axis, block: CellBlock) -> dict[str, object]:
    """What hovering shows: the number and, if there are not too many cells, its row and column."""
    if block != (1, 1):
        of = f"of {block[0]} × {block[1]} positions"
        return {"hovertemplate": f"%{{z:.4f}}<br>{of}<extra></extra>"}
    if shown.size > HOVERED:
        return {"hovertemplate": "%{z:.4f}<extra></extra>"}
    down = [f"{rows.name} {rows.label(row)}" for row in range(len(rows.labels))]
    along = [f"{columns.name} {columns.label(column)}" for column in range(len(columns.labels))]
    places = np.array([[f"{row}, {column}" for column in along] for row in down], object)
    return {"hovertext": places, "hovertemplate": "%{hovertext}<br>%{z:.4f}<extra></extra>"}


def _places(block: CellBlock) -> dict[str, float]:
    """Where the cells lie on axes that count rows and columns, also where a block of them shares a cell."""
    (rows, columns) = block
    if block == (1, 1):
        return {}
    return {"y0": (rows - 1) / 2, "dy": rows, "x0": (columns - 1) / 2, "dx": columns}


def _in_blocks(figure: go.Figure, block: CellBlock, *, is_positive: bool) -> go.Figure:
    """The figure, whose cells are blocks, with a sentence under it, in the explorer's words."""
    below = figure.layout.margin.b
    most = "their maximum" if is_positive else say("value_largest_size")
    figure.update_layout(height=figure.layout.height + _SENTENCE, margin_b=below + _SENTENCE)
    words = f"One cell = {block[0]} × {block[1]} positions,<br>{most}."
    place = {"xref": "paper", "yref": "paper", "yanchor": "top", "yshift": 8 - below}
    return figure.add_annotation(note(words, 0, 0, align="left", **place))
