"""The weights of one head as a picture of a few hundred bytes, for a card."""

from collections.abc import Sequence

import numpy as np

from model.trace.arrays import Array
from viz.figures.miniature import address

LEVELS = 255  # steps from 0 to 1
_FAINT = 6  # levels below this cannot be seen


def rows_of(weights: Array) -> list[str]:
    """weights (query, key) as one text a row, two hexadecimal digits a cell."""
    return [row.tobytes().hex() for row in np.rint(weights * LEVELS).astype(np.uint8)]


def thumbnail(rows: Sequence[str]) -> str:
    """The address of a picture of such rows, which is as opaque as the weights are large. It has no colour of
    its own: a style sheet uses it as a mask."""
    levels = [bytes.fromhex(row) for row in rows]
    cells = "".join(
        f'<path d="M{column} {row}h1v1h-1z" opacity="{level / LEVELS:.2f}"/>'
        for row, line in enumerate(levels)
        for column, level in enumerate(line)
        if level >= _FAINT
    )
    return address(len(levels[0]), len(levels), cells)
