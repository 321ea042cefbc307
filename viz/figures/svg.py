"""Pictures drawn as SVG, without Plotly: arcs over a sentence, small tables beside a line of text, and the
weights of a head for a card or for a notebook that can show no widget."""

# The explorer has code of its own for arcs (viz/explorer/js/arcs.js). There they lie beneath chips that
# the browser has laid out, above a line and below it, and change with every click. Here the words have
# their places before an arc is drawn, so an arc to another line can go around them, in a gutter that
# exists only where there are several lines, and Home shows all of it without the explorer's script. What
# both share is the meaning of an arc: WIDEST, FAINT, and an opacity of 0.25 to 1.

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from model.trace.arrays import Array
from model.trace.records import Attention
from viz.notation.labels import tick_positions, token_label
from viz.notation.readout import readout
from viz.notation.theme import BLACK, MASKED, QUANTITIES, WHITE, QuantityName, weight_colours

LETTERS = 18  # pixels of the letters' size
LETTER = 10.9  # pixels: how wide a letter of that size is
WIDTHS = {"wide": 860, "narrow": 360}  # pixels of a line, on a screen and on a phone
LINE = 118  # pixels from one line to the next
GUTTER = 26  # pixels on the left of several lines, for arcs from line to line, beside the words
LANE, BEND = 22, 12  # pixels: how far above a line they run, and the radius of their bends
RISE = 70  # pixels that the longest arcs rise
WIDEST = 12  # pixels of an arc of weight 1
FAINT = 0.01  # arcs of smaller weights could not be seen
LONGEST = 24  # characters of a token: fewer than fit a line on a phone


@dataclass(frozen=True)
class Box:
    """Where a token stands: the middle of its upper edge, and its width."""

    x: float
    y: float
    width: float


def arc_line(
    tokens: Sequence[str],
    weights: NDArray[np.float32],
    chosen: int,
    *,
    width: int = WIDTHS["wide"],
    said: str = "",
) -> str:
    """The sentence in as many lines as it needs, with arcs from each token to those that it attends to.
    An arc is as wide as its weight.

    Args:
        tokens: of the sentence.
        weights: (token, token) of one head; a row sums to 1.
        chosen: the token whose arcs are shown while the pointer is elsewhere.
        width: of a line, in pixels.
        said: what follows the last token, for instance the prediction.

    Raises ValueError if the weights do not belong to so many tokens.
    """
    if weights.shape != (len(tokens), len(tokens)):
        raise ValueError(f"Weights of shape {weights.shape} do not belong to {len(tokens)} tokens.")
    labels = [token_label(token, LONGEST) for token in tokens]
    placed = [*labels, said] if said else labels
    boxes = _laid_out(placed, width)
    if boxes[-1].y > boxes[0].y:
        boxes = _laid_out(placed, width, GUTTER)
    arcs, words = [], []  # arcs lie below the words
    for at, (label, row) in enumerate(zip(labels, weights, strict=True)):
        paths = "".join(
            _arc(boxes[at], boxes[key], float(weight), key == 0)
            for key, weight in enumerate(row)
            if weight >= FAINT
        )
        arcs.append(f'<g class="{"arcs shown" if at == chosen else "arcs"}">{paths}</g>')
        largest = [key for key in np.argsort(-row)[:3] if row[key] >= FAINT]
        listed = ", ".join(f"{labels[key]} {row[key]:.2f}" for key in largest) or "nothing"
        # A button. Only the chosen one is reached with Tab, the others with the arrow keys.
        kind = "token shown chosen" if at == chosen else "token"
        here = boxes[at]
        words.append(
            f'<g class="{kind}" role="button" tabindex="{0 if at == chosen else -1}" data-token="{at}" '
            f'aria-label="{escape(f"Token {at}, {label}, attends to: {listed}")}">'
            f'<rect x="{here.x - here.width / 2 + 1:.1f}" y="{here.y:.1f}" '
            f'width="{here.width - 2:.1f}" height="{LETTERS + 10}" rx="5"></rect>'
            f'<text x="{here.x:.1f}" y="{here.y + LETTERS + 1:.1f}">{escape(label)}</text></g>'
        )
    if said:
        x, y = boxes[-1].x, boxes[-1].y + LETTERS + 1
        words.append(f'<text class="said" x="{x:.1f}" y="{y:.1f}">{escape(said)}</text>')
    height = boxes[-1].y + 2 * LETTERS + 8
    return (
        f'<svg class="arc-line" viewBox="0 0 {width} {height:.0f}" role="group" '
        f'aria-label="The sentence; each token shows what it attends to">{"".join([*arcs, *words])}</svg>'
    )


def _laid_out(labels: Sequence[str], line: int, margin: float = 0.0) -> list[Box]:
    """Side by side, in lines of this width. margin: on their left."""
    boxes, left, top = list[Box](), margin, float(RISE + 8)
    for label in labels:
        width = (len(label) + 1.2) * LETTER
        if left > margin and left + width > line:
            left, top = margin, top + LINE
        boxes.append(Box(left + width / 2, top, width))
        left += width
    return boxes


def _arc(start: Box, end: Box, weight: float, is_first: bool) -> str:
    """From the upper edge of one token to that of another, rising with the distance; to another line it
    goes around the words."""
    rise = min(18 + 0.28 * abs(start.x - end.x), RISE) * 4 / 3
    if start == end:
        path = f"M{start.x - 5:.1f},{start.y:.1f} c-12,{-rise:.1f} 22,{-rise:.1f} 10,0"
    elif start.y != end.y:
        path = _around(start, end)
    else:
        path = (
            f"M{start.x:.1f},{start.y:.1f} C{start.x:.1f},{start.y - rise:.1f} "
            f"{end.x:.1f},{end.y - rise:.1f} {end.x:.1f},{end.y:.1f}"
        )
    kind = ' class="first"' if is_first else ""
    return (
        f'<path{kind} d="{path}" stroke-width="{weight * WIDEST:.2f}" '
        f'stroke-opacity="{0.25 + 0.75 * weight:.2f}"><title>{weight:.4f}</title></path>'
    )


def _around(start: Box, end: Box) -> str:
    """Up from one token, along its line to the gutter, there to the other line, and down to the other."""
    corners = [
        (start.x, start.y - LANE),
        (GUTTER / 2, start.y - LANE),
        (GUTTER / 2, end.y - LANE),
        (end.x, end.y - LANE),
    ]
    ways = [(0, -1), (-1, 0), (0, 1 if end.y > start.y else -1), (1, 0), (0, 1)]
    path = f"M{start.x:.1f},{start.y:.1f}"
    for (x, y), ((in_x, in_y), (out_x, out_y)) in zip(corners, pairwise(ways), strict=True):
        path += (
            f" L{x - BEND * in_x:.1f},{y - BEND * in_y:.1f}"
            f" Q{x:.1f},{y:.1f} {x + BEND * out_x:.1f},{y + BEND * out_y:.1f}"
        )
    return f"{path} L{end.x:.1f},{end.y:.1f}"


_PALE = 0.02  # shares of the largest size below this cannot be seen


def miniature(values: NDArray[np.floating], quantity: QuantityName) -> str:
    """The address of a picture of values (row, column) as cells or (column,) as bars, of a few hundred bytes.
    The larger a number, the more opaque its cell or the higher its bar; numbers below 0 are grey."""
    table = np.atleast_2d(np.asarray(values, dtype=np.float64))
    shares = table / (np.abs(table).max() or 1)
    rows, columns = shares.shape
    hue = QUANTITIES[quantity].hue
    if rows > 1:
        return _stretched(
            columns,
            rows,
            (
                f'<path d="{_square(row, column)}" fill="{hue if share > 0 else MASKED}" '
                f'opacity="{abs(share):.2f}"/>'
                for (row, column), share in np.ndenumerate(shares)
                if abs(share) >= _PALE
            ),
        )
    # From a common zero, three units wide with a gap of one, 12 units high for the largest size.
    (bars,) = shares
    up, down = 12 * max(bars.max(), 0), 12 * max(-bars.min(), 0)
    paths = (
        f'<path d="M{4 * at} {up:.1f}h3v{-12 * share:.1f}h-3z" fill="{hue if share > 0 else MASKED}"/>'
        for at, share in enumerate(bars)
    )
    return _stretched(4 * columns - 1, round(up + down) or 1, paths)


LEVELS = 255  # steps from 0 to 1
_FAINTEST = 6  # levels below this cannot be seen


def rows_of(weights: Array) -> list[str]:
    """weights (query, key) as one text a row, two hexadecimal digits a cell."""
    return [row.tobytes().hex() for row in np.rint(weights * LEVELS).astype(np.uint8)]


def thumbnail(rows: Sequence[str]) -> str:
    """The address of a picture of such rows, which is as opaque as the weights are large. It has no colour of
    its own: a style sheet uses it as a mask."""
    levels = [bytes.fromhex(row) for row in rows]
    cells = (
        f'<path d="{_square(row, column)}" opacity="{level / LEVELS:.2f}"/>'
        for row, line in enumerate(levels)
        for column, level in enumerate(line)
        if level >= _FAINTEST
    )
    return _stretched(len(levels[0]), len(levels), cells)


def _square(row: int, column: int) -> str:
    """The path of a cell."""
    return f"M{column} {row}h1v1h-1z"


def _stretched(width: int, height: int, paths: Iterable[str]) -> str:
    """A picture of paths as an address, stretched to the place where it is shown."""
    return _address(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'preserveAspectRatio="none" shape-rendering="crispEdges">{"".join(paths)}</svg>'
    )


def _address(svg: str) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


_CELLS = 64  # rows and columns of a still picture, at most
_STILL = (240, 420)  # pixels of its longer side, at least and at most
_CELL = 26  # pixels of a cell, where there are few
_LABEL, _WIDTH = 14, 6.7  # letters of a label; pixels of a letter
_SHADES = 64  # of weights from 0 to 1


def still(
    attention: Attention,
    cell: tuple[int, int, int],
    *,
    queries: Sequence[str],
    keys: Sequence[str],
) -> str:
    """The weights of a head with their tokens, and one cell in a sentence below, as HTML without scripts. Of
    a long text a square is the largest weight of a block. cell: the chosen head, query and key."""
    head, query, key = cell
    words = escape(readout(attention, head, query, key, queries=queries, keys=keys))
    weights = attention.weights(head)
    rows, columns = weights.shape
    least, most = _STILL
    size = min(max(_CELL * max(rows, columns), least), most) / max(rows, columns)
    names = [[token_label(text, _LABEL) for text in texts] for texts in (queries, keys)]
    left, top = (10 + _WIDTH * max(map(len, texts)) for texts in names)
    texts = [
        f'<text x="{left - 5:.1f}" y="{top + (row + 0.5) * size + 4:.1f}" text-anchor="end">'
        f"{escape(names[0][row])}</text>"
        for row in tick_positions(rows)
    ]
    texts += [
        f'<text transform="translate({left + (column + 0.5) * size + 4:.1f} {top - 5:.1f}) rotate(-90)">'
        f"{escape(names[1][column])}</text>"
        for column in tick_positions(columns)
    ]
    side = f'width="{columns * size:.1f}" height="{rows * size:.1f}"'
    at = f'x="{left:.1f}" y="{top:.1f}" {side}'
    address = _address(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + columns * size + 10:.0f}" '
        f'height="{top + rows * size + 10:.0f}" font-family="monospace" font-size="11" fill="{BLACK}">'
        f'<rect width="100%" height="100%" fill="{WHITE}"/>{_shaded(weights, at)}'
        f'<rect {at} fill="none" stroke="{MASKED}"/>{"".join(texts)}</svg>'
    )
    return (
        f'<figure style="margin:8px 0"><img alt="Attention weights, row = query, column = key. {words}" '
        f'src="{address}"><figcaption>{words}</figcaption></figure>'
    )


def _shaded(weights: NDArray[np.float32], place: str) -> str:
    """Squares in the colours of weights on a light page, one path a shade. place: where they lie, in SVG."""
    for axis in (0, 1):
        step = -(-weights.shape[axis] // _CELLS)
        weights = np.maximum.reduceat(weights, range(0, weights.shape[axis], step), axis)
    levels = np.rint(np.clip(weights, 0, 1) * _SHADES).astype(int)
    colours = weight_colours("light", np.linspace(0, 1, _SHADES + 1).tolist())
    paths = [
        f'<path fill="{colours[level]}" d="'
        f'{"".join(_square(row, column) for row, column in np.argwhere(levels == level))}"/>'
        for level in np.unique(levels[levels > 0])
    ]
    rows, columns = levels.shape
    return (
        f'<svg {place} viewBox="0 0 {columns} {rows}" preserveAspectRatio="none" '
        f'shape-rendering="crispEdges">{"".join(paths)}</svg>'
    )
