"""How much each head reads of what heads before it write, from their matrices alone."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from model.analysis.attribution.head_matrices import HeadMatrices
from model.nn.places import Head
from model.trace.arrays import Wide

Reads = Literal["Q", "K", "V"]


@dataclass(frozen=True)
class Composition:
    """‖W_OV of the earlier head · what the later one reads with‖, as a share of both lengths (Frobenius)."""

    earlier: Head
    later: Head
    reads: Reads  # through its queries, keys or values
    ratio: float


def compositions(heads: Sequence[HeadMatrices]) -> Iterator[Composition]:
    """Of each pair of heads of which the later reads the stream that the earlier writes to, up to three
    numbers, as `model.arithmetic.composition` says."""
    for first, second in combinations([_Grams(one) for one in heads], 2):
        yield from _between(first, second)


def compositions_of(chosen: HeadMatrices, heads: Iterable[HeadMatrices]) -> Iterator[Composition]:
    """The same of one head with each of the others. These may be made one by one."""
    grams = _Grams(chosen)
    for one in heads:
        yield from _between(grams, _Grams(one))


class _Grams:
    """The D × D products of a head's maps that the norms are made of."""

    def __init__(self, one: HeadMatrices) -> None:
        self.one = one
        query, key, self.gram = (side @ side.T for side in (one.query, one.key, one.value))
        output = one.output.T @ one.output
        looks, self.length = (
            float(np.sqrt(np.sum(first * second)))
            for first, second in ((query, key), (self.gram, output))
        )
        # What it reads with, what stands behind that, and the length of both.
        self.reads: dict[Reads, tuple[Wide, Wide, float]] = {
            "Q": (one.query, key, looks),
            "K": (one.key, query, looks),
            "V": (one.value, output, self.length),
        }


def _between(first: _Grams, second: _Grams) -> Iterator[Composition]:
    earlier, later = sorted((first, second), key=lambda one: one.one.order)
    if earlier.one.order == later.one.order:
        return
    for reads, (near, behind, length) in later.reads.items():
        if earlier.one.stack == (later.one.stack if reads == "Q" else later.one.read):
            seen = near @ earlier.one.output  # (D, D)
            square = float(np.sum((seen @ earlier.gram) * (behind @ seen)))
            ratio = max(square, 0.0) ** 0.5 / (earlier.length * length)
            yield Composition(earlier.one.head, later.one.head, reads, ratio)
