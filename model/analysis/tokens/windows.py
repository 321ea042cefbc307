"""Sliding windows over a text: what a model that predicts the next token is trained on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Window(Generic[T]):
    """A stretch of tokens and its target, the stretch one token later."""

    start: int
    inputs: tuple[T, ...]
    target: tuple[T, ...]


def windows(tokens: Sequence[T], length: int, stride: int) -> tuple[Window[T], ...]:
    """Every window of `length` tokens with one after it, `stride` apart. Raises ValueError where length
    or stride is below 1, or the text is too short."""
    if length < 1 or stride < 1:
        raise ValueError(f"Length {length} and stride {stride} must be at least 1.")
    if len(tokens) <= length:
        raise ValueError(
            f"A window of {length} and its next token need {length + 1} tokens; "
            f"there are {len(tokens)}."
        )
    starts = range(0, len(tokens) - length, stride)
    return tuple(
        Window(at, tuple(tokens[at : at + length]), tuple(tokens[at + 1 : at + length + 1]))
        for at in starts
    )
