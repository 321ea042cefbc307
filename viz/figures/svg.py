"""Pictures drawn as SVG, without Plotly: small tables beside a line of text, and the weights of a head for a
card or for a notebook that can show no widget."""

import base64
from collections.abc import Iterable, Sequence
from html import escape
from threading import Lock

import numpy as np
from cachetools import LRUCache, cached
from numpy.typing import NDArray

from model.trace.arrays import Array
from model.trace.records import Attention
from viz.notation.labels import tick_positions, token_label
from viz.notation.readout import readout
from viz.notation.theme import BLACK, MASKED, QUANTITIES, WHITE, QuantityName, weight_colours

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


def marked_bars(values: NDArray[np.floating], at: int, colour: str, most: int = 96) -> str:
    """The address of a picture of values as grey bars on one line, one of them in a colour.

    Args:
        values: (number,).
        at: which of them has the colour.
        most: bars that are drawn: of more numbers each bar is the largest of a few, the coloured one itself.
    """
    each = -(-len(values) // most)
    groups = [values[start : start + each] for start in range(0, len(values), each)]
    shown = np.array([group[np.abs(group).argmax()] for group in groups])
    shown[at // each] = values[at]
    top, low = max(float(shown.max()), 0.0), min(float(shown.min()), 0.0)
    scale = 100 / ((top - low) or 1.0)
    paths = (
        f'<path d="M{4 * place} {top * scale:.1f}h3v{-value * scale:.1f}h-3z" '
        f'fill="{colour if place == at // each else MASKED}"/>'
        for place, value in enumerate(shown.tolist())
    )
    return _stretched(4 * len(shown) - 1, 100, paths)


LEVELS = 255  # steps from 0 to 1
_FAINTEST = 6  # levels below this cannot be seen


def rows_of(weights: Array) -> list[str]:
    """weights (query, key) as one text a row, two hexadecimal digits a cell."""
    return [row.tobytes().hex() for row in np.rint(weights * LEVELS).astype(np.uint8)]


@cached(LRUCache(64), key=tuple, lock=Lock())
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
    a long text a square is the largest weight of a block.

    Args:
        cell: the chosen head, query and key, from 0.
        queries, keys: the texts of their tokens.
    """
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
