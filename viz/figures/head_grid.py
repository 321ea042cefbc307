"""All heads of a model as one picture: rows are layers, columns heads, each tile a head's weights."""

from collections.abc import Iterator, Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from model.analysis.heads.tiles import Tiles
from viz.figures.chart import BARE, MONOSPACED, chart, titled
from viz.figures.head_marks import Cell, Pitch, add_marks, frame, hue_of
from viz.figures.squares import BELOW, MARGIN, SCALE
from viz.notation.labels import tick_positions
from viz.notation.theme import MASKED, colorscale, rgba

LEVELS = 255  # steps of colour from 0 to 1: a screen shows no more
FINE = 24  # least cells along a tile, so that the gap between tiles stays thin
WIDTH, HEIGHT = 500, 560  # of all tiles together, in pixels
LEAST, LARGEST = 28, 140  # size of a tile in pixels
_ABOVE = 72  # height of the axis above in pixels
_GREY: list[list[float | str]] = [[0.0, rgba(MASKED, 0.0)], [1.0, rgba(MASKED, 0.2)]]
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
    chosen: Cell | None,
    words: Sequence[str],
    groups: int = 0,
    marked: Sequence[Cell] = (),
) -> go.Figure:
    """Every head's weights on one scale from 0 to 1, masked cells grey and hatched, one image in all.

    words: what hovering over each head says, layer by layer, as Plotly may draw it. groups: heads of keys and
    values in a layer, where heads share them: those that share one have frames of one colour. The trace
    "heads" has one point for each head, numbered so, that can be clicked. marked: heads with a dotted frame.
    """
    layers, heads, rows, columns = found.weights.shape
    times = max(1, FINE // max(rows, columns))
    high, wide = rows * times, columns * times
    pitch = Pitch(((wide - 1) / 2, (high - 1) / 2), (wide + 1, high + 1), (wide / 2, high / 2))
    blocked = np.broadcast_to(found.blocked[:, None], found.weights.shape)
    levels = np.rint(found.weights * LEVELS).astype(np.uint8)
    tile = max(LEAST, min(LARGEST, WIDTH // heads, HEIGHT // layers))
    traces = [_image(_finer(levels, times), colorscale("weight"), zmax=LEVELS, colorbar=_COLORBAR)]
    if (
        blocked.any()
    ):  # above the weights, whose zero is solid; a weight that leaks keeps its colour
        hidden = _finer((blocked & (levels == 0)).astype(np.uint8), times)
        traces += [_image(hidden, _GREY, zmax=1, showscale=False), _hatching(hidden, tile)]
    cells = [(layer, head) for layer in range(layers) for head in range(heads)]
    height = int(layers * tile * min(high / wide, 1.0)) + _ABOVE + BELOW
    axes = _axes(pitch, layers, heads)
    figure = chart([*traces, *_frames(pitch, cells, groups)], *axes, height=height, margin=MARGIN)
    add_marks(figure, cells, pitch, words=words, chosen=chosen)
    for cell in marked:
        frame(figure, pitch, cell, "dot")
    return figure


def tiles_in_a_row(found: Tiles, names: Sequence[str]) -> go.Figure:
    """A few heads side by side, each under its name, without axes and scale."""
    figure = head_grid(found, chosen=None, words=names)
    figure.update_xaxes(ticktext=list(names), title=None)
    figure.update_yaxes(visible=False)
    figure.update_layout(height=figure.layout.height - BELOW, margin={"b": 0})
    return figure.update_traces(showscale=False, selector={"type": "heatmap"})


def _finer(tiles: NDArray[np.uint8], times: int) -> NDArray[np.uint8]:
    """Each cell so many times in both directions."""
    return tiles.repeat(times, axis=2).repeat(times, axis=3)


def _hatching(hidden: NDArray[np.uint8], tile: int) -> go.Scatter:
    """Slanting lines over what is 1 in some tiles. tile: their size in pixels."""
    high, wide = hidden.shape[2:]
    lines = []
    for place in range(0, high + wide - 1, max(1, round(_APART * high / tile))):
        rows = np.arange(max(0, place - wide + 1), min(high, place + 1))  # one line, downwards
        edges = np.diff(
            np.pad(hidden[:, :, rows, place - rows], ((0, 0), (0, 0), (1, 1))).astype(int)
        )
        layer, head, first = np.nonzero(edges == 1)
        last = np.nonzero(edges == -1)[2] - 1
        left, top = head * (wide + 1), layer * (high + 1)
        right = left + place
        begins = (right - rows[first] + 0.5, top + rows[first] - 0.5)
        lines.append(np.stack([*begins, right - rows[last] - 0.5, top + rows[last] + 0.5], 1))
    ends = np.concatenate(lines).astype(np.float32)
    gap = np.full(len(ends), np.nan, np.float32)
    x, y = (np.stack([ends[:, at], ends[:, at + 2], gap], 1).ravel() for at in (0, 1))
    line = {"color": rgba(MASKED, 0.6), "width": 1}
    return go.Scatter(
        x=x, y=y, mode="lines", line=line, hoverinfo="skip", showlegend=False, name="masked"
    )


def _image(
    tiles: NDArray[np.uint8], colours: list[list[float | str]], **more: object
) -> go.Heatmap:
    """Tiles (layer, head, row, column) as one image, with an empty line between two tiles."""
    apart = np.pad(tiles, ((0, 0), (0, 0), (0, 1), (0, 1)))
    layers, heads, high, wide = apart.shape
    matrix = apart.transpose(0, 2, 1, 3).reshape(layers * high, heads * wide)[:-1, :-1]
    return go.Heatmap(z=matrix, zmin=0, colorscale=colours, hoverinfo="skip", **more)


def _frames(pitch: Pitch, cells: Sequence[Cell], groups: int) -> Iterator[go.Scatter]:
    """A thin frame around every tile; thicker ones in colours where heads are grouped. One trace a colour."""
    heads = 1 + max(head for _, head in cells)
    by_colour: dict[str, list[Cell]] = {}
    for cell in cells:
        colour = hue_of(cell[1], heads, groups) if groups else rgba(MASKED, 0.6)
        by_colour.setdefault(colour, []).append(cell)
    for colour, framed in by_colour.items():
        x: list[float | None] = []
        y: list[float | None] = []
        for left, right, top, bottom in map(pitch.corners, framed):
            x += [left, right, right, left, left, None]
            y += [top, top, bottom, bottom, top, None]
        line = {"color": colour, "width": 2 if groups else 1}
        yield go.Scatter(x=x, y=y, mode="lines", line=line, hoverinfo="skip", showlegend=False)


def _axes(pitch: Pitch, layers: int, heads: int) -> tuple[dict[str, object], dict[str, object]]:
    left, _, top, _ = pitch.corners((0, 0))
    _, right, _, bottom = pitch.corners((layers - 1, heads - 1))
    bare = BARE | {"tickfont": MONOSPACED, "constrain": "domain"}
    columns, rows = tick_positions(heads), tick_positions(layers)
    across = titled(
        "head",
        side="top",
        tickangle=0,
        tickvals=[pitch.at((0, head))[0] for head in columns],
        ticktext=[str(head) for head in columns],
        range=[left - 1, right + 1],
        constraintoward="left",
    )
    down = titled(
        "layer",
        tickvals=[pitch.at((layer, 0))[1] for layer in rows],
        ticktext=[str(layer) for layer in rows],
        range=[bottom + 1, top - 1],
        scaleanchor="x",
        scaleratio=1,
        constraintoward="top",
    )
    return across | bare, down | bare
