"""Slanting lines over cells that a mask closes, so that grey alone need not say so."""

import numpy as np
from numpy.typing import NDArray

from viz.notation.theme import MASKED, rgba

_STROKES = ((0, 1, 1, 0), (0, 2, 2, 0), (1, 2, 2, 1))  # x, y to x, y: in half cells, from a corner


def hatching(blocked: NDArray[np.bool_]) -> dict[str, object]:
    """One shape, for `add_shape`, over the cells (row, column) that are True: three slanting lines across
    each, between two points of its edge."""
    at = [f"{half / 2 - 0.5:g}" for half in range(2 * max(blocked.shape) + 1)]
    path = "".join(
        f"M{at[x + a]},{at[y + b]}L{at[x + c]},{at[y + d]}"
        for y, x in (2 * np.argwhere(blocked)).tolist()
        for a, b, c, d in _STROKES
    )
    line = {"color": rgba(MASKED, 0.55), "width": 1}
    return {"type": "path", "path": path, "line": line, "layer": "between"}
