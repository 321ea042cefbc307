"""The numbers an example starts from, which a reader may change."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from model.arithmetic import Array64

Labels = tuple[str, ...] | None
AxisNames = str | tuple[str, ...]


def read_only(values: ArrayLike) -> Array64:
    """A float64 copy that cannot be written to, without negative zeros."""
    array = np.asarray(np.array(values, dtype=np.float64) + 0.0)
    array.setflags(write=False)
    return array


def numbered(word: str, count: int, start: int = 0) -> tuple[str, ...]:
    """Axis labels such as ("dim 0", "dim 1")."""
    return tuple(f"{word} {index}" for index in range(start, start + count))


def labelled(shape: tuple[int, ...], axes: tuple[AxisNames, ...]) -> tuple[Labels, Labels]:
    """The labels of rows and columns; one word ("dim") numbers an axis. A single axis is the columns."""
    labels = [
        numbered(axis, length) if isinstance(axis, str) else axis
        for axis, length in zip(axes, shape, strict=True)
    ]
    rows, columns = (None, None, *labels)[-2:]
    return rows, columns


def _size(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) + " numbers" if shape else "one number"


@dataclass(frozen=True, eq=False)
class Input:
    """Numbers a reader may change: an array of up to two axes, of shape () for a single number.

    `given` is what the example opens with. Along one axis the labels stand in `columns`.
    """

    name: str
    label: str
    value: Array64
    given: Array64
    rows: Labels
    columns: Labels
    lowest: float
    highest: float
    whole: bool = False

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

    @property
    def argument(self) -> Array64 | float:
        """The value as a recipe takes it: a single number as int or float."""
        if self.value.ndim:
            return self.value
        return int(self.value) if self.whole else float(self.value)

    def with_value(self, value: ArrayLike) -> "Input":
        """The same input with another value; raises ValueError where it does not fit."""
        needs = f"{self.label} needs {_size(self.value.shape)}, not"
        try:
            array = read_only(value)
        except (TypeError, ValueError):
            raise ValueError(f"{needs} {value!r:.60}.") from None
        if array.shape != self.value.shape:
            raise ValueError(f"{needs} {_size(array.shape)}.")
        for number in array.ravel():
            if not self.lowest <= number <= self.highest:
                allowed = f"{self.lowest:,g} to {self.highest:,g}"
                raise ValueError(f"{self.label} holds {number:g}, which is outside {allowed}.")
            if self.whole and number != round(number):
                raise ValueError(f"{self.label} holds {number:g}, which is not a whole number.")
        return replace(self, value=array)


def given(
    name: str,
    label: str,
    value: ArrayLike,
    *axes: AxisNames,
    lowest: float = -100.0,
    highest: float = 100.0,
) -> Input:
    """An input with the labels of each of its axes; one word ("dim") numbers an axis."""
    array = read_only(value)
    return Input(name, label, array, array, *labelled(array.shape, axes), lowest, highest)


def whole(
    name: str, label: str, value: ArrayLike, lowest: float, highest: float, *axes: AxisNames
) -> Input:
    """An input of whole numbers."""
    return replace(given(name, label, value, *axes, lowest=lowest, highest=highest), whole=True)


def token_ids(name: str, label: str, ids: ArrayLike, *axes: AxisNames) -> Input:
    """An input of token ids, along one axis unless `axes` says more."""
    return whole(name, label, ids, 0, 99_999, *axes or ("token",))
