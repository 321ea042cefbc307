"""Sliding windows over a text: what a model that predicts the next token is trained on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Window(Generic[T]):
    """A stretch of tokens and its target: the same stretch moved on by one."""

    start: int
    inputs: tuple[T, ...]
    target: tuple[T, ...]


def windows(tokens: Sequence[T], length: int, stride: int) -> tuple[Window[T], ...]:
    """Every window of `length` tokens that still has a next one, `stride` apart, from the first on.

    Raises ValueError where length or stride is below 1, or the text is too short for one window.
    """
    if length < 1 or stride < 1:
        raise ValueError(f"Length {length} and stride {stride} must be at least 1.")
    if len(tokens) <= length:
        raise ValueError(
            f"A window of {length} and its next token need {length + 1} tokens; "
            f"there are {len(tokens)}."
        )
    return tuple(
        Window(
            start,
            tuple(tokens[start : start + length]),
            tuple(tokens[start + 1 : start + length + 1]),
        )
        for start in range(0, len(tokens) - length, stride)
    )
