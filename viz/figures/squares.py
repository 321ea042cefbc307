"""Square cells, as the explorer draws them: how large they are, and what stands around them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from viz.figures.letters import letters_wide
from viz.figures.room import LEFT, LETTER, PER_SIZE, PHONE, height_of_labels
from viz.notation.labels import drawn_letters
from viz.notation.theme import MASKED, rgba

LARGEST = 64  # pixels of a cell
TALLEST = 620  # pixels of a picture
ABOVE, BELOW = 120, 54  # pixels above cells that have no labels; of the scale below them
FLATTEST, STEEPEST = 0.25, 2.0  # height by width of all cells: beyond, they are not quite square
SLANTED = -60  # degrees
LARGE, SMALL = 12, 9  # size of the numbers in the cells, and the smallest that can be read
SCALE: Mapping[str, object] = {  # below the cells, at their left
    "orientation": "h",
    "len": 170,
    "lenmode": "pixels",
    "x": 0,
    "xanchor": "left",
    "xpad": 0,
    "y": 0,
    "yanchor": "top",
    "ypad": 8,
}
MARGIN: Mapping[str, object] = {"l": 8, "r": 8, "t": 8, "b": BELOW, "pad": 0}
_FRAME: dict[str, object] = {
    "constrain": "domain",
    "showline": True,
    "mirror": True,
    "linecolor": rgba(MASKED, 0.5),
}
_AROUND, _BETWEEN = 4, 5  # pixels around a number, and between labels

AxisLayout = dict[str, object]


@dataclass(frozen=True)
class Squares:
    """The layout of square cells in a picture that is wide enough.

    side: a cell's width in pixels. steep: its height by its width. height: of the picture, in pixels.
    """

    side: float
    steep: float
    angle: int  # of the labels above the columns, in degrees
    height: int

    def number_size(self, words: Sequence[Sequence[str]]) -> float:
        """The size of letters at which all words fit their cells; 0 if it is too small to be read."""
        longest = max((len(drawn_letters(word)) for row in words for word in row), default=0)
        fits = (self.side - _AROUND) / (max(longest, 1) * PER_SIZE)
        size = min(LARGE, fits, self.side * self.steep / 1.3)
        return size if size >= SMALL else 0

    def axes(self, above: AxisLayout, down: AxisLayout) -> tuple[AxisLayout, AxisLayout]:
        """The axes of such cells, which stand at the left where there is more room."""
        across = _FRAME | {"constraintoward": "left", "tickangle": self.angle}
        return above | across, down | _FRAME | {"scaleanchor": "x", "scaleratio": self.steep}


def squares(shape: tuple[int, int], above: AxisLayout, down: AxisLayout) -> Squares:
    """The layout of so many rows and columns. above, down: their axes."""
    rows, columns = shape
    share = float(np.clip(rows / columns, FLATTEST, STEEPEST))
    steep = share * columns / rows
    over, beside = (cast("list[str]", axis["ticktext"]) for axis in (above, down))
    angle = 0 if _longest(over) + _BETWEEN <= _cell_on_a_phone(beside, columns) else SLANTED
    around = (height_of_labels(over, angle) or ABOVE) + BELOW
    side = min(LARGEST, LARGEST / steep, (TALLEST - around) / (rows * steep))
    return Squares(side, steep, angle, round(side * steep * rows + around))


def _cell_on_a_phone(beside: Sequence[str], columns: int) -> float:
    return min(LARGEST, (PHONE - LEFT - _longest(beside)) / columns)


def _longest(labels: Sequence[str]) -> float:
    return LETTER * max(map(letters_wide, labels), default=0)
