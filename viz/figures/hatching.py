"""Slanting lines over cells that a mask closes, so that grey alone need not say so."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from viz.theme import MASKED, rgba


def hatching(blocked: NDArray[np.bool_]) -> dict[str, object]:
    """One shape, for `add_shape`, over the cells (row, column) that are True."""
    strokes = (stroke for cell in np.argwhere(blocked) for stroke in _strokes(*map(int, cell)))
    line = {"color": rgba(MASKED, 0.55), "width": 1}
    return {"type": "path", "path": " ".join(strokes), "line": line, "layer": "between"}


def _strokes(row: int, column: int) -> Iterator[str]:
    """Three slanting lines across a cell, each between two points of its edge."""
    for along in (0.5, 1.0, 1.5):
        low, high = max(0.0, along - 1), min(1.0, along)
        start = f"{column - 0.5 + low:g},{row - 0.5 + along - low:g}"
        yield f"M{start} L{column - 0.5 + high:g},{row - 0.5 + along - high:g}"
