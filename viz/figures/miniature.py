"""Numbers as a picture of a few hundred bytes, beside a line of text: a table as cells, a row as bars."""

import base64

import numpy as np
from numpy.typing import NDArray

from viz.notation.theme import MASKED, QUANTITIES, QuantityName

_FAINT = 0.02  # shares of the largest size below this cannot be seen


def miniature(values: NDArray[np.floating], quantity: QuantityName) -> str:
    """The address of a picture of values (row, column) or (column,). The larger a number, the more opaque
    its cell or the higher its bar; numbers below 0 are grey."""
    table = np.atleast_2d(np.asarray(values, dtype=np.float64))
    shares = table / (np.abs(table).max() or 1)
    draw = _bars if len(shares) == 1 else _cells
    width, height, paths = draw(shares, QUANTITIES[quantity].hue)
    return address(width, height, paths)


def address(width: int, height: int, paths: str) -> str:
    """A picture of paths as an address, stretched to the place where it is shown."""
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'preserveAspectRatio="none" shape-rendering="crispEdges">{paths}</svg>'
    )
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def _cells(shares: NDArray[np.floating], hue: str) -> tuple[int, int, str]:
    rows, columns = shares.shape
    paths = "".join(
        f'<path d="M{column} {row}h1v1h-1z" fill="{hue if share > 0 else MASKED}" '
        f'opacity="{abs(share):.2f}"/>'
        for (row, column), share in np.ndenumerate(shares)
        if abs(share) >= _FAINT
    )
    return columns, rows, paths


def _bars(shares: NDArray[np.floating], hue: str) -> tuple[int, int, str]:
    """Bars from a common zero, three units wide with a gap of one, 12 units high for the largest size."""
    (bars,) = shares
    up, down = 12 * max(bars.max(), 0), 12 * max(-bars.min(), 0)
    paths = "".join(
        f'<path d="M{4 * at} {up:.1f}h3v{-12 * share:.1f}h-3z" fill="{hue if share > 0 else MASKED}"/>'
        for at, share in enumerate(bars)
    )
    return 4 * len(bars) - 1, round(up + down) or 1, paths
