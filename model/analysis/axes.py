"""What an operation on axes does to a tensor: to its shape, its strides and its place in memory.

Each operation is a line of PyTorch (axes.toml), and the line that is shown is the one that runs.
"""

import ast
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from model.trace.arrays import Array


class AxisChoice(NamedTuple):
    """A whole number that a reader may choose."""

    label: str
    value: int
    lowest: int
    highest: int


SIZES: Mapping[str, AxisChoice] = {
    "b": AxisChoice("Sequences", 2, 1, 2),
    "n": AxisChoice("Tokens", 3, 1, 4),
    "w": AxisChoice("Width", 4, 1, 12),
    "h": AxisChoice("Heads", 2, 1, 4),
    "m": AxisChoice("Tokens of the mask", 3, 1, 4),
}


AXES = (-4, -3, -2, -1)
TensorLines = tuple[tuple[str, str], ...]  # name and expression of each tensor


@dataclass(frozen=True)
class AxisOperation:
    """One operation. lines: the last tensor is made of the one before it; a word in braces is a size, or the
    chosen axis.

    before, after: the axes of the tensor, named. sizes: those that a reader may choose. means: its message in
    one sentence, where it can fail.
    """

    name: str
    title: str
    lines: TensorLines
    before: str
    after: str
    sizes: str
    what: str
    means: str = ""

    @property
    def over(self) -> bool:
        """Whether it works along an axis that a reader chooses."""
        return "{axis}" in self.lines[-1][1]

    def written(self, chosen: Mapping[str, int]) -> TensorLines:
        """The lines with numbers in place of sizes. Raises ValueError for a number that is no such size."""
        numbers = _numbers(chosen)
        return tuple((name, line.format_map(numbers)) for name, line in self.lines)


@cache
def axis_operations() -> Mapping[str, AxisOperation]:
    """All operations by name, in the order of the page."""
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    listed = tomllib.loads(text)["operation"]
    return {
        one["name"]: AxisOperation(lines=tuple(map(tuple, one.pop("lines"))), **one)
        for one in listed
    }


@dataclass(frozen=True, eq=False)
class Layout:
    """A tensor and how it lies in memory."""

    values: Array  # as it is read
    memory: Array  # (number,): all numbers of its memory, one after another
    strides: tuple[int, ...]  # numbers to skip for one step along each axis
    contiguous: bool  # whether it is read in the order of its memory

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape


@dataclass(frozen=True, eq=False)
class Outcome:
    """A tensor before an operation and after it, or PyTorch's message. shared: both read one memory."""

    before: Layout
    after: Layout | None
    shared: bool
    message: str = ""

    @property
    def made(self) -> Layout:
        """The tensor after it. Raises ValueError with PyTorch's message where there is none."""
        if self.after is None:
            raise ValueError(self.message)
        return self.after


def run(lines: TensorLines, given: Mapping[str, Tensor] = {}) -> Outcome:
    """Runs lines of `name = expression`, the last one on the tensor of the line before it, or on the only one
    given."""
    known: dict[str, Any] = {"torch": torch, **given}
    *first, (_, operation) = lines
    for name, line in first:
        known[name] = _value(line, known)
    before: Tensor = known[[*known][-1]]
    try:
        after: Tensor = _value(operation, known)
    except (RuntimeError, ValueError, IndexError) as error:
        return Outcome(layout(before), None, False, f"{type(error).__name__}: {error}")
    shared = before.untyped_storage().data_ptr() == after.untyped_storage().data_ptr()
    return Outcome(layout(before), layout(after), shared)


def layout(tensor: Tensor) -> Layout:
    """The tensor as numbers, and the memory that it reads."""
    memory = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
    return Layout(tensor.numpy(), memory.numpy(), tensor.stride(), tensor.is_contiguous())


def _numbers(chosen: Mapping[str, int]) -> dict[str, int]:
    sizes = {letter: chosen.get(letter, size.value) for letter, size in SIZES.items()}
    for letter, size in SIZES.items():
        if not (type(sizes[letter]) is int and size.lowest <= sizes[letter] <= size.highest):
            raise ValueError(
                f"{size.label}: it must be a whole number from {size.lowest} to {size.highest}."
            )
    axis = chosen.get("axis", -1)
    if axis not in AXES:
        raise ValueError(f"There is no axis {axis}; there are {AXES}.")
    b, n, w, h, m = sizes.values()
    d = max(w // h, 1)
    products = {
        "bnw": b * n * w,
        "bnhd": b * n * h * d,
        "hd": h * d,
        "bhnn": b * h * n * n,
        "mm": m * m,
    }
    return sizes | products | {"d": d, "axis": axis}


def _value(line: str, known: Mapping[str, Any]) -> Any:
    """The value of an expression of names, numbers, and calls of what belongs to a name."""
    return _of(ast.parse(line, mode="eval").body, known)


def _of(node: ast.expr, known: Mapping[str, Any]) -> Any:
    match node:
        case ast.Name(name):
            return known[name]
        case ast.Constant(value):
            return value
        case ast.UnaryOp(ast.USub(), operand):
            return -_of(operand, known)
        case ast.Attribute(owner, name):
            return getattr(_of(owner, known), name)
        case ast.Call(function, arguments, named):
            given = [_of(one, known) for one in arguments]
            return _of(function, known)(
                *given, **{one.arg: _of(one.value, known) for one in named if one.arg}
            )
    raise ValueError(f"{ast.unparse(node)} is no such expression.")
