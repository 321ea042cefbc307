"""Heads and parts of a model as tiles: maps of weights, one number each, lines between them. Each tile can be
clicked: the trace "heads" has one point for each, numbered row by row."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from model.analysis.heads.statistics import Tiles
from viz.figures.chart import (
    BARE,
    CLICKED,
    MONOSPACED,
    STEADY,
    Axis,
    bars_across,
    chart,
    drawn_path,
    ends_around,
    frame,
    line,
    marks,
    note,
    numbered,
    outlines,
    titled,
)
from viz.figures.heatmap import NUMBERED, ON_DIVERGING, STRONG, Matrix, heatmap, numbers_in_cells
from viz.figures.room import BELOW, LETTERS, MARGIN, SCALE
from viz.notation.labels import plotly_words, tick_positions
from viz.notation.numbers import signed
from viz.notation.theme import (
    HEADS,
    INK,
    KEY,
    LESS,
    MASKED,
    MORE,
    PAPER,
    QUANTITIES,
    QUERY,
    SCORE,
    VALUE,
    WEIGHT,
    QuantityName,
    colorscale,
    rgba,
    rising_scale,
)
from viz.notation.words import sentences_of

say = sentences_of("figures.head_tiles")

TileCell = tuple[int, int]  # (layer, head), or (row, column)


@dataclass(frozen=True)
class Pitch:
    """The positions of the tiles (layer, head) in the figure's units."""

    middle: tuple[float, float]  # of tile (0, 0): x, y
    step: tuple[float, float]  # to the next head, to the next layer
    half: tuple[float, float]  # of a tile's width and height

    def at(self, cell: TileCell) -> tuple[float, float]:
        """The middle of a tile: x, y."""
        layer, head = cell
        return self.middle[0] + head * self.step[0], self.middle[1] + layer * self.step[1]

    def sides(self, cell: TileCell) -> tuple[float, float, float, float]:
        """Left, right, top and bottom of a tile."""
        (x, y), (wide, high) = self.at(cell), self.half
        return x - wide, x + wide, y - high, y + high


CELLS = Pitch((0.0, 0.0), (1.0, 1.0), (0.5, 0.5))  # of a plain heatmap


def hue_of(head: int, heads: int, groups: int) -> str:
    """The colour of a head among others; heads that share a head of keys and values have one colour."""
    return HEADS[(head * groups // heads) % len(HEADS)]


def _add_marks(
    figure: go.Figure,
    shape: tuple[int, int],
    words: Sequence[str],
    framed: Sequence[TileCell],
    pitch: Pitch = CELLS,
) -> None:
    """Adds the trace "heads", and frames; a click anywhere in the figure chooses the nearest tile.

    Args:
        shape: rows and columns of tiles.
        words: what hovering says of each, as Plotly may draw it.
        framed: the tiles with a frame.
        pitch: where the tiles lie.
    """
    places = [pitch.at(cell) for cell in np.ndindex(shape)]
    invisible = {"marker": {"opacity": 0}}
    figure.add_trace(
        marks(
            [x for x, _ in places],
            [y for _, y in places],
            name="heads",
            marker={"size": 14, "symbol": "square", "opacity": 0},
            selected=invisible,
            unselected=invisible,
            text=list(words),
            hover="%{text}",
        )
    )
    for cell in framed:
        frame(figure, pitch.sides(cell), INK, 2.5, "solid")
    figure.layout.update(CLICKED | {"hovermode": "closest", "hoverdistance": -1})


LEVELS = 255  # steps of colour from 0 to 1: a screen shows no more
FINE = 24  # least cells along a tile, so that the gap between tiles stays thin
WIDTH, HEIGHT = 648, 480  # of all tiles together, in pixels
LEAST, LARGEST = 28, 140  # size of a tile in pixels
NAMED_FROM = 72  # pixels of a tile that has room for the name of a job
_STRIP = 20  # pixels of a line for it
_ABOVE = 72  # height of the axis above in pixels
_APART = 7  # pixels between two lines of the hatching, about
_COLORBAR = {
    **SCALE,
    "thickness": 10,
    "outlinewidth": 0,
    "tickvals": [0, LEVELS / 4, LEVELS / 2, 3 * LEVELS / 4, LEVELS],
    "ticktext": ["0", "0.25", "0.5", "0.75", "1"],
}


def head_grid(
    found: Tiles,
    *,
    chosen: TileCell | None,
    words: Sequence[str],
    groups: int = 0,
    jobs: Sequence[str] = (),
) -> go.Figure:
    """Every head's weights on one scale from 0 to 1, masked cells grey and hatched, one image in all: rows
    are layers, columns heads.

    Args:
        found: the weights.
        chosen: the head with a frame.
        words: what hovering over each head says, layer by layer, as Plotly may draw it.
        groups: heads of keys and values in a layer, where heads share them: those that share one have frames
            of one colour.
        jobs: what each head is called, "" for none, layer by layer: under tiles that are wide enough.
    """
    layers, heads, rows, columns = found.weights.shape
    times = max(1, FINE // max(rows, columns))
    high, wide = rows * times, columns * times
    tile = _tile(layers, heads)
    strip = round(_STRIP / tile * wide) if any(jobs) and tile >= NAMED_FROM else 0
    step = (wide + 1, high + 1 + strip)
    pitch = Pitch(((wide - 1) / 2, (high - 1) / 2), step, (wide / 2, high / 2))
    blocked = np.broadcast_to(found.blocked[:, None], found.weights.shape)
    levels = np.rint(found.weights * LEVELS).astype(np.uint8)

    def finer(tiles: NDArray[np.uint8]) -> NDArray[np.uint8]:
        return tiles.repeat(times, axis=2).repeat(times, axis=3)

    traces = [_image(finer(levels), colorscale("weight"), strip, zmax=LEVELS, colorbar=_COLORBAR)]
    shapes = []
    if (
        blocked.any()
    ):  # above the weights, whose zero is solid; a weight that leaks keeps its colour
        hidden = finer((blocked & (levels == 0)).astype(np.uint8))
        grey: list[list[float | str]] = [[0.0, rgba(MASKED, 0.0)], [1.0, rgba(MASKED, 0.2)]]
        traces.append(_image(hidden, grey, strip, zmax=1, showscale=False))
        shapes.append(_hatching(hidden, tile, strip))
    by_colour: dict[str, list[TileCell]] = {}
    for cell in np.ndindex(layers, heads):
        colour = hue_of(cell[1], heads, groups) if groups else rgba(MASKED, 0.6)
        by_colour.setdefault(colour, []).append(cell)
    for colour, framed in by_colour.items():
        sides = [pitch.sides(cell) for cell in framed]
        shapes.append(outlines(sides, colour, width=2 if groups else 1))
    if strip:
        traces.append(_words_on_tiles(jobs, (layers, heads), pitch, down=(high + strip) / 2))
    height = int(layers * tile * min(step[1] / step[0], 1.5)) + _ABOVE + BELOW
    axes = _axes(pitch, layers, heads)
    figure = chart(traces, *axes, height=height, margin=MARGIN, shapes=shapes)
    _add_marks(figure, (layers, heads), words, [] if chosen is None else [chosen], pitch)
    return figure


def _tile(layers: int, heads: int) -> int:
    """Pixels of a tile."""
    return max(LEAST, min(LARGEST, WIDTH // heads, HEIGHT // layers))


def _words_on_tiles(
    words: Sequence[str],
    shape: tuple[int, int],
    pitch: Pitch,
    *,
    down: float,
    strong: Sequence[bool] = (),
) -> go.Scatter:
    """A word on each tile, so far below its middle. Where the tiles are too narrow it is hidden.

    strong: whether a tile has a strong colour, on which letters have the colour of the page.
    """
    places = [pitch.at(cell) for cell in np.ndindex(shape)]
    colours = [PAPER if one else INK for one in strong] or INK
    return marks(
        [x for x, _ in places],
        [y + down for _, y in places],
        mode="text",
        text=[plotly_words(word) for word in words],
        textfont={"color": colours, "size": LETTERS},
        meta={"units": pitch.step[0]},
        name="jobs",
    )


def tiles_in_a_row(found: Tiles, names: Sequence[str]) -> go.Figure:
    """A few heads side by side, each under its name, without axes and scale."""
    figure = head_grid(found, chosen=None, words=names)
    figure.update_xaxes(ticktext=list(names), title=None)
    figure.update_yaxes(visible=False)
    figure.update_layout(height=figure.layout.height - BELOW, margin={"b": 0})
    return figure.update_traces(showscale=False, selector={"type": "heatmap"})


def _hatching(hidden: NDArray[np.uint8], tile: int, strip: int) -> dict[str, object]:
    """Slanting lines over what is 1 in some tiles. tile: their size in pixels. strip: cells between two
    layers."""
    high, wide = hidden.shape[2:]
    lines = []
    for place in range(0, high + wide - 1, max(1, round(_APART * high / tile))):
        rows = np.arange(max(0, place - wide + 1), min(high, place + 1))  # one line, downwards
        edges = np.diff(
            np.pad(hidden[:, :, rows, place - rows], ((0, 0), (0, 0), (1, 1))).astype(int)
        )
        layer, head, first = np.nonzero(edges == 1)
        last = np.nonzero(edges == -1)[2] - 1
        left, top = head * (wide + 1), layer * (high + 1 + strip)
        right = left + place
        begins = (right - rows[first] + 0.5, top + rows[first] - 0.5)
        lines.append(np.stack([*begins, right - rows[last] - 0.5, top + rows[last] + 0.5], 1))
    ends = np.concatenate(lines).tolist()
    path = "".join(f"M{x0:.1f},{y0:.1f}L{x1:.1f},{y1:.1f}" for x0, y0, x1, y1 in ends)
    return drawn_path(path, rgba(MASKED, 0.6), 1)


def _image(
    tiles: NDArray[np.uint8], colours: list[list[float | str]], strip: int, **more: object
) -> go.Heatmap:
    """Tiles (layer, head, row, column) as one image, with an empty line between two tiles, and a strip of
    more lines between two layers."""
    apart = np.pad(tiles, ((0, 0), (0, 0), (0, 1 + strip), (0, 1)))
    layers, heads, high, wide = apart.shape
    matrix = apart.transpose(0, 2, 1, 3).reshape(layers * high, heads * wide)[: -1 - strip, :-1]
    return go.Heatmap(z=matrix, zmin=0, colorscale=colours, hoverinfo="skip", **more)


def _axes(
    pitch: Pitch, layers: int, heads: int, steep: float = 1
) -> tuple[dict[str, object], dict[str, object]]:
    """steep: the height of a unit by its width."""
    left, _, top, _ = pitch.sides((0, 0))
    _, right, *_ = pitch.sides((layers - 1, heads - 1))
    bottom = top + layers * pitch.step[1]
    edge = min(1.0, pitch.half[0] / 16)
    bare = BARE | {"tickfont": MONOSPACED, "constrain": "domain"}
    columns, rows = tick_positions(heads), tick_positions(layers)
    across = titled(
        "head",
        side="top",
        tickangle=0,
        tickvals=[pitch.at((0, head))[0] for head in columns],
        ticktext=[str(head) for head in columns],
        range=[left - edge, right + edge],
        constraintoward="left",
    )
    down = titled(
        "layer",
        tickvals=[pitch.at((layer, 0))[1] for layer in rows],
        ticktext=[str(layer) for layer in rows],
        range=[bottom, top - edge],
        scaleanchor="x",
        scaleratio=steep,
        constraintoward="top",
    )
    return across | bare, down | bare


ROOMY = 8  # up to so many heads in a layer the numbers have room
LEADING_NOUGHT = re.compile(r"(?<!\d)0\.")
HIGHEST = 640  # pixels
FLAT = 0.9  # height of a tile by its width, where it holds a number


def head_map(
    values: Matrix,
    *,
    quantity: QuantityName,
    title: str,
    chosen: TileCell | None,
    words: Sequence[str],
    jobs: Sequence[str] = (),
) -> go.Figure:
    """values (layer, head) as colours and, where they fit, numbers.

    Args:
        quantity: "weight" runs from 0 to 1, "difference" diverges around 0, any other runs from 0 to the
            largest value.
        title: what the numbers are, beside the colour bar.
        chosen: the head with a frame.
        words: what hovering over each head says, layer by layer, as Plotly may draw it.
        jobs: what each head is called, as in `head_grid`, under its number.
    """
    layers, heads = values.shape
    tile = _tile(layers, heads)
    named = any(jobs) and tile >= NAMED_FROM
    largest = float(np.nanmax(np.abs(values), initial=0.0))
    written = None
    if heads <= ROOMY:
        written = numbers_in_cells(values, 2 if largest < 100 else 1)
    elif heads <= NUMBERED:
        few = 1 if largest >= 10 else 2
        written = [
            [LEADING_NOUGHT.sub(".", word) for word in row] for row in numbers_in_cells(values, few)
        ]
    figure = heatmap(
        values,
        rows=numbered("layer", layers),
        columns=numbered("head", heads),
        quantity=quantity,
        words=written,
        height=round(layers * tile * FLAT) + _ABOVE + BELOW,
    )
    across, down = _axes(CELLS, layers, heads, FLAT)
    figure.layout.update(xaxis=across, yaxis=down, margin=MARGIN)
    if quantity not in ("weight", "difference"):
        figure.data[-1].update(zmin=0, colorscale=rising_scale(QUANTITIES[quantity].hue))
    figure.data[-1].colorbar.update(SCALE | {"len": 230})
    if named:
        share = np.nan_to_num(np.abs(values).ravel()) / (
            1.0 if quantity == "weight" else largest or 1
        )
        strong = (share > (ON_DIVERGING if quantity == "difference" else STRONG)).tolist()
        figure.add_trace(_words_on_tiles(jobs, (layers, heads), CELLS, down=0.32, strong=strong))
    cells = next(one for one in figure.data if one.type == "heatmap" and one.showscale)
    cells.update(hoverinfo="skip", hovertemplate=None, hovertext=None)
    cells.colorbar.title = {"text": title, "side": "right"}
    _add_marks(figure, (layers, heads), words, [] if chosen is None else [chosen])
    return figure


def head_bars(
    names: Sequence[str],
    values: Sequence[float],
    *,
    quantity: QuantityName,
    title: str,
    words: Sequence[str],
    chosen: int | None,
) -> go.Figure:
    """One number of each head as bars, from the top down. The trace "heads" has a point for each.

    Args:
        names: of the heads, with their jobs.
        title: what the numbers are.
        words: what hovering over each says, as Plotly may draw it.
        chosen: the number of the head whose name is bold.
    """
    hue = QUANTITIES[quantity].hue
    signs = [MORE if value > 0 else LESS for value in values]
    bars = bars_across(
        values,
        signs if quantity == "difference" else hue,
        text=[signed(f"{value:.2f}") for value in values],
        textposition="outside",
        hover="%{hovertext}",
        hovertext=list(words),
        name="heads",
        showlegend=False,
        **STEADY,
    )
    rows = [plotly_words(name) for name in names]
    if chosen is not None:
        rows[chosen] = f"<b>{rows[chosen]}</b>"
    down = Axis("", names, tokens=False).down(most=len(names), tickfont=None) | {"ticktext": rows}
    across = titled(title, range=ends_around(values, 0.3), zeroline=True, side="top")
    height = 26 * len(names) + 64
    return chart(bars, across, down, height=height).update_layout(CLICKED, bargap=0.3)


def patch_map_figure(
    values: Matrix,
    *,
    rows: Axis,
    columns: Axis,
    title: str,
    words: Sequence[str],
    chosen: Sequence[TileCell] = (),
    limit: float | None = None,
) -> go.Figure:
    """How far each part of another run moves an answer, (row, column): 0 is grey, NaN is empty.

    Args:
        title: what the numbers are, beside the colour bar.
        words: what hovering over each cell says, row by row, as Plotly may draw it.
        chosen: the framed cells.
        limit: end of the scale; None: the largest value.
    """
    figure = heatmap(
        values,
        rows=rows,
        columns=columns,
        quantity="difference",
        limit=limit,
        words=None if values.shape[1] <= NUMBERED else (),
        height=min(max(32 * len(values) + 130, 220), HIGHEST),
    )
    # A heatmap whose cells can be clicked. title: beside its colour scale.
    cells = figure.data[-1]
    cells.update(hoverinfo="skip", hovertemplate=None, hovertext=None)
    if title:
        cells.colorbar.title = {"text": title, "side": "right"}
    _add_marks(figure, np.shape(cells.z), words, chosen)
    return figure


_COLOURS = {"Q": QUERY, "K": KEY, "V": VALUE}
_SIDE = {"Q": -1, "K": 0, "V": 1}  # lines of one pair stand side by side
_BESIDE = (0.05, 0.14)  # by so much: where they leave a head, and where one reads
_ROWS = 9  # at most, between which a name has room
_WIDEST = 6.0  # pixels of the line of the largest ratio


class Link(NamedTuple):
    """One line: from the head that writes to the one that reads."""

    earlier: TileCell  # sub-layer and head, counted from 0
    later: TileCell
    reads: str  # "Q", "K" or "V"
    ratio: float
    words: str
    short: str  # beside the widest line


def composition_graph(
    layers: Sequence[str], heads: int, links: Sequence[Link], *, chosen: TileCell
) -> go.Figure:
    """Which heads read what others wrote: heads as points, layer below layer.

    Args:
        layers: their names, from the top down.
        heads: of each layer.
        links: each drawn as wide as its ratio, coloured by what reads it; the widest above the rest, with
            rings around both ends, and named where its name lies on no other row.
        chosen: layer and head of the larger point.
    """
    links = sorted(links, key=lambda link: link.ratio)
    largest = links[-1].ratio if links else 1.0
    traces: list[go.Scatter] = []
    named: set[str] = set()
    for link in links:
        places = (link.earlier, link.later)
        traces.append(
            line(
                [
                    head + _SIDE[link.reads] * by
                    for (_, head), by in zip(places, _BESIDE, strict=True)
                ],
                [layer for layer, _ in places],
                f"read by {link.reads}",
                _COLOURS[link.reads],
                hover=link.words,
                width=_WIDEST * link.ratio / largest,
                legendgroup=link.reads,
                showlegend=link.reads not in named,
                legendrank=list(_COLOURS).index(link.reads),
                opacity=1 if link is links[-1] else 0.55,
            )
        )
        named.add(link.reads)
    cells = list(np.ndindex(len(layers), heads))
    traces.append(
        marks(
            [head for _, head in cells],
            [layer for layer, _ in cells],
            hover="%{text}",
            text=[f"{layers[layer]}, head {head}" for layer, head in cells],
            name="heads",
            marker={
                "size": [18 if cell == chosen else 8 for cell in cells],
                "color": [WEIGHT if cell == chosen else MASKED for cell in cells],
            },
        )
    )
    notes = []
    if links:
        widest = links[-1]
        (layer, head), (below, reader) = widest.earlier, widest.later
        ring = {"symbol": "circle-open", "size": 18, "line": {"width": 3}}
        ring |= {"color": _COLOURS[widest.reads]}
        traces.append(marks([head, reader], [layer, below], name="widest", marker=ring))
        if len(layers) <= _ROWS:
            words = f"<b>{plotly_words(widest.short)}</b>"
            side = "left" if head < heads / 2 else "right"
            notes = [note(words, head, layer, xanchor=side, yshift=20)]
    down = Axis("", list(layers), tokens=False).down()
    height = min(max(60 * len(layers) + 110, 300), 700)
    return chart(
        traces,
        numbered("head", heads).across(),
        down,
        height=height,
        showlegend=True,
        annotations=notes,
    )


def singular_curves(looks: Sequence[float], writes: Sequence[float]) -> go.Figure:
    """The singular values of both matrices, each as a share of its largest, the largest first."""
    lines = [
        line(
            list(range(1, len(values) + 1)),
            [value / values[0] for value in values],
            name,
            colour,
            mode="lines+markers",
            text=[f"{value:.4f}" for value in values],
            hover="number %{x}: %{text}",
        )
        for values, name, colour in ((looks, "W_Q · W_Kᵀ", SCORE), (writes, "W_V · W_O", VALUE))
    ]
    up = titled(say("share_largest"), range=[0, 1.05])
    return chart(lines, titled("singular value"), up, height=340)
