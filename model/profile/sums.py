"""What a profile adds up for each head, as whole numbers.

A float64 sum depends on the order of its summands. Whole numbers do not: each number of a window is rounded
once to a multiple of 2^-bits, and from then on only integers are added.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.nn.places import Head
from model.profile.examples import Examples
from model.profile.token_classes import CLASSES
from model.trace.collect import doubled

Whole = NDArray[np.int64]
SHARES = ("self", "previous", "next", "first", "same", "induction", "punctuation", "delimiter")
LARGEST, UNCOUNTED = 2.0**63, -(2**63)  # beyond an int64, and none of its whole numbers
MAP = 16  # rows and columns of the mean map
LOG_BINS, SIGNED_LOG_BINS = (
    1024,
    4096,
)  # of float32's sign, exponent and first three digits of the fraction
ENTROPY_BINS, ENTROPY_STEP = 256, 0.05  # nats


@dataclass(frozen=True)
class Field:
    """One sum of each head. size: how many numbers, in the order of `axis`. bits: after the binary point."""

    axis: str
    size: int
    bits: int = 0


def fields(window: int) -> dict[str, Field]:
    """The sums of a profile over windows of so many tokens."""
    made = {f"{share}": Field("", 1, 30) for share in SHARES}
    made |= {f"{share}_rows": Field("", 1) for share in SHARES}
    return made | {
        "rows": Field("", 1),
        "entropy": Field("", 1, 28),
        "carried": Field("", 1, 20),  # weight · |value · W_O|, of whole rows
        "effect": Field(
            "", 1, 24
        ),  # on the logit of the token that comes next, against the mean logit
        "effect_rows": Field("", 1),
        "by_offset": Field("query − key, from −(window − 1)", 2 * window - 1, 30),
        "classes": Field("class of the query, class of the key", len(CLASSES) ** 2, 30),
        "class_rows": Field("class of the query", len(CLASSES)),
        "map": Field("part of the queries, part of the keys", MAP**2, 30),
        "map_windows": Field("", 1),
        "weights": Field("float32 bits >> 20", LOG_BINS),
        "entropies": Field(f"bins of {ENTROPY_STEP} nats", ENTROPY_BINS),
        "effects": Field("float32 bits >> 20", SIGNED_LOG_BINS),
    }


class UncountedError(ValueError):
    """A window of a corpus cannot be counted; the others can."""


def whole(numbers: Tensor, bits: int) -> Tensor:
    """Numbers as multiples of 2^-bits, rounded once, where they lie. What is not finite, or too large, is
    `UNCOUNTED`."""
    scaled = doubled(numbers).mul(2.0**bits).round()
    counts = scaled.abs() < LARGEST  # NaN is not smaller than anything
    return torch.where(counts, scaled, 0.0).long().masked_fill(~counts, UNCOUNTED)


def counted(numbers: Tensor) -> Whole:
    """What `whole` gives, on the processor. Raises UncountedError for numbers that are not finite, or too
    large."""
    found: Whole = numbers.numpy()
    if (found == UNCOUNTED).any():
        raise UncountedError("The model's numbers over this text are not finite, or too large.")
    return found


@dataclass(frozen=True, eq=False)
class Sums:
    """Everything that is known of some windows of a corpus. Two add up to that of all their windows."""

    heads: tuple[Head, ...]
    window: int  # most tokens of one
    windows: int
    tokens: int
    numbers: Mapping[str, Whole]  # (head, size of the field)
    examples: Examples

    @classmethod
    def none(cls, heads: Sequence[Head], window: int) -> "Sums":
        """Those of no window."""
        numbers = {
            name: np.zeros((len(heads), field.size), np.int64)
            for name, field in fields(window).items()
        }
        return cls(tuple(heads), window, 0, 0, numbers, Examples.none())

    def __add__(self, other: "Sums") -> "Sums":
        """Raises ValueError for sums of other heads, or over windows of another length."""
        made = replace(self, numbers={name: ours.copy() for name, ours in self.numbers.items()})
        made += other
        return made

    def __iadd__(self, other: "Sums") -> "Sums":
        """The same sum in this one's arrays, which nobody else may hold."""
        if (self.heads, self.window) != (other.heads, other.window):
            raise ValueError(
                "These are profiles of other heads, or over windows of another length."
            )
        for name, ours in self.numbers.items():
            ours += other.numbers[name]
        return Sums(
            self.heads,
            self.window,
            self.windows + other.windows,
            self.tokens + other.tokens,
            self.numbers,
            self.examples + other.examples,
        )
