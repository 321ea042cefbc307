"""The strongest examples of each head, and some chosen by chance beside them, so that the best do not
mislead."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

KEPT = 8  # examples of each head and criterion, no two from one window
LETTERS = 32  # of a token, the first ones: enough to know it again and to search for it
CRITERIA = ("weight", "carried", "effect", "chance")
ROW = np.dtype(
    [
        ("head", np.int32),
        ("criterion", np.int32),
        ("score", np.float64),  # the larger, the better
        ("window", np.int64),
        ("query", np.int32),
        ("key", np.int32),
        ("weight", np.float32),
        ("query_token", f"U{LETTERS}"),
        ("key_token", f"U{LETTERS}"),
    ]
)


@dataclass(frozen=True, eq=False)
class Examples:
    """At most KEPT of each head and criterion: those with the largest score, the earlier window first."""

    rows: NDArray[np.void]  # of ROW, ordered

    @classmethod
    def none(cls) -> "Examples":
        return cls(np.empty(0, ROW))

    @classmethod
    def best(cls, rows: NDArray[np.void]) -> "Examples":
        """The best examples. The order is total, so the result does not depend on the order of the rows."""
        order = np.lexsort((rows["window"], -rows["score"], rows["criterion"], rows["head"]))
        ranked = rows[order]
        group = ranked["head"].astype(np.int64) * len(CRITERIA) + ranked["criterion"]
        starts = np.concatenate([[True], group[1:] != group[:-1]]) if len(group) else group
        first = np.maximum.accumulate(np.where(starts, np.arange(len(group)), 0))
        return cls(ranked[np.arange(len(group)) - first < KEPT])

    def __add__(self, other: "Examples") -> "Examples":
        return Examples.best(np.concatenate([self.rows, other.rows]))


def by_chance(window: int, heads: NDArray[np.int64]) -> NDArray[np.float64]:
    """(head,): a number from 0 to 1 for each head in one window, the same at each run: the mixing function
    of SplitMix64 (Steele et al. 2014)."""
    mixed = (np.uint64(window) << np.uint64(20)) + heads.astype(np.uint64)
    with np.errstate(over="ignore"):
        mixed += np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray((mixed ^ (mixed >> np.uint64(31))) / 2.0**64)
