"""What the notes print, kept in their digits, so that its precision is known; and their errata."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from model.worked.source import Source, quoted

NOTHING = "_"  # a cell that the notes leave out
_EXACT = 4


@dataclass(frozen=True)
class Printed:
    """Figures as the notes print them: rows parted by `;`, numbers by blanks, `_` where there is none.

    A whole number or a fraction is exact, to the four decimals the notes work with; a factor in words
    (`7x`) is rounded to a whole number. `source` says where the figures stand; `quotation` is one place
    there, word for word. `erratum` says in one sentence why figures are wrong, where any are.
    """

    text: str
    source: Source
    quotation: str
    erratum: str | None = None

    @property
    def figures(self) -> tuple[str, ...]:
        """Every printed figure, row after row, and `_` for each cell without one."""
        return tuple(self.text.replace(";", " ").split())

    @property
    def values(self) -> NDArray[np.float64]:
        """The printed figures as numbers, in one row; NaN where nothing is printed."""
        return np.array([_value(figure) for figure in self.figures])

    @property
    def decimals(self) -> tuple[int, ...]:
        """To how many decimals each figure is given."""
        return tuple(_decimals(figure) for figure in self.figures)

    def differing(self, result: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which printed figures are not `result` rounded to the digits printed, in its shape."""
        if self.values.size != result.size:
            raise ValueError(f"The notes print {self.values.size} figures, not {result.size}.")
        distance = np.abs(result.ravel() - self.values)  # NaN, which no comparison finds too large
        wrong: NDArray[np.bool_] = distance > 0.5 * 10.0 ** -np.array(self.decimals, float) + 1e-12
        return wrong.reshape(result.shape)


@dataclass(frozen=True)
class Erratum:
    """One erratum: what the notes say, what the arithmetic gives, why, and the example that shows it.

    `source` is where the notes say it, `quotation` their own words there; `step` is the title of the
    step that holds both figures, None for an erratum of words or code.
    """

    section: str
    source: Source
    quotation: str
    notes_say: str
    arithmetic_gives: str
    why: str
    example: str
    step: str | None = None


@cache
def printed_steps() -> Mapping[tuple[str, str], Printed]:
    """What the notes print, by the example's name and the title of its step."""
    return {
        (one["example"], one["step"]): Printed(
            one["figures"], one["source"], one["quotation"], one.get("erratum")
        )
        for one in quoted("printed.toml")
    }


def _value(figure: str) -> float:
    if figure == NOTHING:
        return float("nan")
    return float(Fraction({"False": "0"}.get(figure, figure.rstrip("%x"))))


def _decimals(figure: str) -> int:
    if figure.endswith("x"):
        return 0
    return len(figure.partition(".")[2]) if "." in figure else _EXACT
