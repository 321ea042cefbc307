"""Where a head of a known kind looks, as cells of its map, and how much of its weight lies there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from model.analysis.heads.statistics import after_the_same, mean_share
from model.trace.arrays import Array, Mask, read_only

PatternName = Literal["induction", "previous_token"]


@dataclass(frozen=True, eq=False)
class Pattern:
    """The cells that a head of one kind fills. A text may have none of them."""

    name: PatternName
    cells: Mask  # (query, key)

    @property
    def rows(self) -> int:
        """How many queries have such a cell."""
        return int(self.cells.any(-1).sum())

    def mean_weight(self, weights: Array) -> NDArray[np.float64]:
        """(…): weights (…, query, key) summed over the cells of each row that has some, then the
        mean over those rows. Raises ValueError where the text has no such cell."""
        if self.rows == 0:
            raise ValueError(f"No token of this text has a place for the pattern {self.name}.")
        return mean_share(weights, self.cells)


def induction_pattern(tokens: Sequence[int] | Sequence[str]) -> Pattern:
    """Each token looks at what followed it earlier: in "a b c a" the second "a" looks at "b".

    Its mean weight is `model.analysis.heads.statistics.prefix_matching`.
    """
    return Pattern("induction", read_only(after_the_same(tokens)))


def previous_token_pattern(length: int) -> Pattern:
    """Each token looks at the one before it."""
    return Pattern("previous_token", read_only(np.eye(length, k=-1, dtype=bool)))
