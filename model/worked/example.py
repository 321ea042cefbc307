"""The types of the worked examples: an editable input, a step of arithmetic, a whole example."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from model.arithmetic import Array as Array
from model.worked.equality import settled
from model.worked.printed import Printed

Quantity = Literal["query", "key", "value", "score", "weight", "output", "other"]
Labels = tuple[str, ...] | None
Axis = str | tuple[str, ...]


def read_only(values: ArrayLike) -> Array:
    """A float64 copy that cannot be written to, without negative zeros."""
    array: Array = np.array(values, dtype=np.float64) + 0.0
    array = np.asarray(array, dtype=np.float64)
    array.setflags(write=False)
    return array


def numbered(word: str, count: int, start: int = 0) -> tuple[str, ...]:
    """Axis labels such as ("dim 0", "dim 1")."""
    return tuple(f"{word} {index}" for index in range(start, start + count))


def _size(shape: tuple[int, ...]) -> str:
    if not shape:
        return "one number"
    if len(shape) == 1:
        return f"{shape[0]} numbers"
    return " × ".join(str(length) for length in shape) + " numbers"


@dataclass(frozen=True, eq=False)
class Input:
    """Numbers a reader may change.

    `value` is a read-only array of up to two axes, of shape () for a single number; `given` is the
    value the example opens with. Along one axis the labels stand in `columns`.
    """

    name: str
    label: str
    value: Array
    rows: Labels = None
    columns: Labels = None
    lowest: float = -100.0
    highest: float = 100.0
    whole: bool = False
    given: Array = field(default_factory=lambda: read_only(()))

    def __post_init__(self) -> None:
        value = read_only(self.value)
        object.__setattr__(self, "value", value)
        if not self.given.size:
            object.__setattr__(self, "given", value)

    @property
    def rule(self) -> str:
        """What is allowed here, in one sentence."""
        kind = "Whole numbers" if self.whole else "Numbers"
        return f"{kind} from {self.lowest:,g} to {self.highest:,g}."

    @property
    def symbol(self) -> str:
        """The letter that stands for it in formulas: the last word of "Embedding matrix E (chosen)"."""
        return self.label.partition(" (")[0].split()[-1]

    @property
    def changed(self) -> bool:
        """Whether this input no longer holds what the example opened with."""
        return not np.array_equal(self.value, self.given)

    def with_value(self, value: ArrayLike) -> Input:
        """The same input with another value; raises ValueError where it does not fit."""
        try:
            array = read_only(value)
        except (TypeError, ValueError):
            raise ValueError(
                f"{self.label} needs {_size(self.value.shape)}, not {value!r:.60}."
            ) from None
        self._check(array)
        return replace(self, value=array)

    def _check(self, array: Array) -> None:
        if array.shape != self.value.shape:
            raise ValueError(
                f"{self.label} needs {_size(self.value.shape)}, not {_size(array.shape)}."
            )
        for number in array.ravel():
            if not self.lowest <= number <= self.highest:
                raise ValueError(
                    f"{self.label} holds {number:g}, which is outside "
                    f"{self.lowest:,g} to {self.highest:,g}."
                )
            if self.whole and number != round(number):
                raise ValueError(f"{self.label} holds {number:g}, which is not a whole number.")


def given(
    name: str,
    label: str,
    value: ArrayLike,
    *axes: Axis,
    lowest: float = -100.0,
    highest: float = 100.0,
) -> Input:
    """An input with the labels of each of its axes; one word ("dim") labels an axis by number."""
    array = read_only(value)
    labels = [
        numbered(axis, length) if isinstance(axis, str) else axis
        for axis, length in zip(axes, array.shape, strict=True)
    ]
    rows, columns = (None, None, *labels)[-2:]
    return Input(name, label, array, rows, columns, lowest=lowest, highest=highest)


def whole(
    name: str, label: str, value: ArrayLike, lowest: float, highest: float, *axes: Axis
) -> Input:
    """An input of whole numbers."""
    return replace(given(name, label, value, *axes, lowest=lowest, highest=highest), whole=True)


def token_ids(name: str, label: str, ids: ArrayLike, *axes: Axis) -> Input:
    """An input of token ids, along one axis unless `axes` says more."""
    return whole(name, label, ids, 0, 99_999, *axes or ("token",))


@dataclass(frozen=True, eq=False)
class Step:
    """One line of arithmetic: a general formula, the same with this example's numbers, the result.

    `result` has up to two axes and only finite numbers. `rows` and `columns` label its axes; along
    a single axis the labels stand in `columns`. `blocked` marks the cells a mask hides, in the
    shape of the result. `notes` is what the notes print; `comment` is a reason that holds for any
    inputs.
    """

    title: str
    formula: str
    result: Array
    numbers: str | None = None
    rows: Labels = None
    columns: Labels = None
    quantity: Quantity = "other"
    notes: Printed | None = None
    comment: str | None = None
    blocked: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "result", read_only(self.result))
        if not np.isfinite(self.result).all():
            raise ValueError(f"These inputs make “{self.title}” too large to be shown.")
        lengths = tuple(len(labels) for labels in (self.rows, self.columns) if labels is not None)
        if lengths and lengths != self.result.shape:
            raise ValueError(f"“{self.title}” has {lengths} labels for {self.result.shape}.")

    @property
    def printed(self) -> Array | None:
        """What the notes print, in the shape of the result: NaN in a cell that they leave out.

        None where they print nothing.
        """
        if self.notes is None:
            return None
        return read_only(self.notes.values.reshape(self.result.shape))

    @property
    def differing(self) -> NDArray[np.bool_] | None:
        """Which cells the notes print otherwise, judged to the digits they print."""
        return None if self.notes is None else self.notes.differing(self.result)

    @property
    def agrees(self) -> bool | None:
        """Whether what the notes print is the result, to the digits they print."""
        differing = self.differing
        return None if differing is None else not bool(differing.any())

    @property
    def remark(self) -> str | None:
        """One sentence: the slip of the notes where there is one, else the reason of the step."""
        if self.notes is not None and self.notes.slip is not None:
            return self.notes.slip
        return self.comment


Values = Mapping[str, Array]
Recipe = Callable[[Values], tuple[Step, ...]]


@dataclass(frozen=True, eq=False)
class Example:
    """A worked example: inputs, and the steps its recipe computes from them.

    `name` is a stable slug for links, `section` the section of the notes.
    """

    name: str
    title: str
    section: str
    idea: str
    inputs: tuple[Input, ...]
    recipe: Recipe = field(repr=False)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The arithmetic from the inputs to the result; raises ValueError where they do not allow it."""
        matrices = {item.symbol: item.value for item in self.inputs if item.value.ndim == 2}
        return tuple(
            replace(
                step,
                numbers=step.numbers and settled(step.numbers, matrices),
                notes=None if self.changed else step.notes,
            )
            for step in self.recipe({item.name: item.value for item in self.inputs})
        )

    @property
    def topic(self) -> str:
        """The module the example stands in."""
        return self.recipe.__module__.rpartition(".")[2]

    @property
    def changed(self) -> bool:
        """Whether any input differs from what the example opened with."""
        return any(item.changed for item in self.inputs)

    def with_inputs(self, **values: ArrayLike) -> Example:
        """The example worked again with these inputs, the others left as they are.

        What the notes print then no longer applies, unless the inputs are those of the notes.
        Raises ValueError with a plain sentence for an unknown name or a value that does not fit.
        """
        known = {item.name for item in self.inputs}
        for name in values.keys() - known:
            raise ValueError(f"“{self.title}” has no input {name!r}, only {sorted(known)}.")
        changed = replace(
            self,
            inputs=tuple(
                item.with_value(values[item.name]) if item.name in values else item
                for item in self.inputs
            ),
        )
        _ = changed.steps  # inputs that fit one by one may still not fit together
        return changed


def worked(
    name: str, section: str, title: str, idea: str, *inputs: Input
) -> Callable[[Recipe], Example]:
    """Decorates a recipe: makes it the worked example with these words and these inputs."""
    return lambda recipe: Example(name, title, section, idea, inputs, recipe)
