"""What the notes print, kept as they print it, so that its precision is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_EXACT = 4


@dataclass(frozen=True)
class Printed:
    """Figures as the notes print them: rows parted by `;`, numbers by blanks.

    A whole number is meant exactly, to the four decimals the notes work with; with a point after it
    (`7.`) it was rounded. `slip` says in one sentence why the figures are off, where they are off.
    """

    text: str
    slip: str | None = None

    @property
    def figures(self) -> tuple[str, ...]:
        """Every printed figure, row after row."""
        return tuple(self.text.replace(";", " ").split())

    @property
    def values(self) -> NDArray[np.float64]:
        """The printed figures as numbers, in one row."""
        return np.array([float(figure.replace(",", "")) for figure in self.figures])

    @property
    def precision(self) -> NDArray[np.float64]:
        """Half a unit of the last printed digit of each figure: the most that rounding takes."""
        places = [
            len(figure.partition(".")[2]) if "." in figure else _EXACT for figure in self.figures
        ]
        return 0.5 * 10.0 ** -np.array(places, dtype=np.float64)

    def differing(self, result: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which printed figures are not `result` rounded to the digits printed, in its shape."""
        if self.values.size != result.size:
            raise ValueError(f"The notes print {self.values.size} figures, not {result.size}.")
        distance = np.abs(result.ravel() - self.values)
        wrong: NDArray[np.bool_] = distance > self.precision + 1e-12
        return wrong.reshape(result.shape)
