"""A prompt: what the model reads, and the cells of the weights whose mean is asked for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from model.nn.config import Stack
from model.trace.arrays import Mask
from model.trace.records import Attention, Token

if TYPE_CHECKING:
    from model.run.model import Model

WANTED = "wanted"
PROMPTS = 6  # of each kind: so many different lengths, orders and words
FEWEST = 3  # prompts without which there is no evidence


class Cells(NamedTuple):
    """Some cells of one label. role: WANTED, or the name of a control."""

    label: str
    role: str
    mask: Mask  # (query, key)


@dataclass(frozen=True)
class Line:
    """One text as tokens, and the cells of self-attention over it."""

    tokens: tuple[Token, ...]
    cells: tuple[Cells, ...] = ()


@dataclass(frozen=True)
class Prompt:
    """What one pass reads, and what is asked of it."""

    source: Line
    target: Line | None = None  # what the decoder of an encoder–decoder reads
    cross: tuple[Cells, ...] = ()  # (token of the target, token of the source)

    def asked(self, attention: Attention) -> tuple[Cells, ...]:
        """The cells that one sub-layer is asked for."""
        if attention.kind == "cross":
            return self.cross
        line = self.target if self.target and attention.stack == "decoder" else self.source
        return line.cells


@dataclass(frozen=True)
class Prompts:
    """All prompts of some labels. refused: why others could not be asked, by stack and label."""

    made: tuple[Prompt, ...] = ()
    refused: Mapping[tuple[Stack, str], str] = field(default_factory=dict)

    def __add__(self, other: "Prompts") -> "Prompts":
        return Prompts((*self.made, *other.made), {**self.refused, **other.refused})


def at(length: int, pairs: Iterable[tuple[int, int]]) -> Mask:
    """(length, length): True at some (query, key) that stand in the text."""
    mask: Mask = np.zeros((length, length), dtype=bool)
    for query, key in pairs:
        if 0 <= query < length and 0 <= key < length:
            mask[query, key] = True
    return mask


def from_other_rows(wanted: Mask) -> Mask:
    """A control: the same keys, seen from the rows that ask for no key and are no such key themselves. A head
    that attends to these keys whatever the query is, fails it."""
    keys = wanted.any(0)
    mask: Mask = np.outer(~wanted.any(1) & ~keys, keys)
    return mask


def begun(model: "Model", tokens: tuple[Token, ...]) -> Line | None:
    """The beginning of what a decoder writes, where a second stack does; nothing is asked of it."""
    return Line(model.begun(tokens)) if model.config.shape == "encoder-decoder" else None
