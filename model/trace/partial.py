"""Attention of which another program kept a part, such as its weights: what lacks is refused by name."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from model.trace.arrays import Array
from model.trace.records import Attention, gaps_of_steps, largest
from model.trace.unproven import NotShownError

AttentionVector = Literal["query", "key", "value", "output"]
VECTORS: tuple[AttentionVector, ...] = ("query", "key", "value", "output")


class NotRecordedError(NotShownError):
    """Numbers are asked for that a record does not have. The sentence names them, and what there is.

    >>> from model.exchange import read
    >>> read((trace.attention[0].weights()[None],)).attention[0].query
    Traceback (most recent call last):
        ...
    NotRecordedError: The query of attentions.0 was not recorded. Recorded there: weights.
    """

    def __init__(self, lacks: str, place: str, recorded: Sequence[str]) -> None:
        super().__init__(
            f"The {lacks} of {place} was not recorded. Recorded there: {', '.join(recorded) or 'nothing'}."
        )


@dataclass(frozen=True, eq=False, repr=False)
class PartialAttention(Attention):
    """An attention sub-layer without some of its vectors. In `vectors` an absent one has the width 0.

    Scores and weights are those of `steps`, or follow from queries and keys where both are there. Reading
    what is neither raises NotRecordedError.
    """

    absent: tuple[AttentionVector, ...] = ()

    @property
    def query(self) -> Array:
        self._require("query")
        return super().query

    @property
    def key(self) -> Array:
        self._require("key")
        return super().key

    @property
    def value(self) -> Array:
        self._require("value")
        return super().value

    @property  # type: ignore[misc]  # a field of the whole record
    def output(self) -> Array:
        self._require("output")
        output: Array = vars(self)["output"]
        return output

    @output.setter
    def output(self, output: Array) -> None:
        vars(self)["output"] = output  # once, when the record is made

    @property
    def recorded(self) -> tuple[str, ...]:
        """The names of what was recorded."""
        return (*(name for name in VECTORS if name not in self.absent), *self.steps)

    def changed(self, **fields_: Any) -> "PartialAttention":
        """The same record with other fields."""
        own = {one.name: vars(self)[one.name] for one in fields(self)}
        return PartialAttention(**own | fields_)

    def require_whole(self) -> None:
        """Raises NotRecordedError where a vector is absent."""
        for name in self.absent:
            self._require(name)

    def _of(self, which: int, head: int) -> Array:
        self._require(VECTORS[which])
        return super()._of(which, head)

    def _gap(self, head: int) -> float:
        """Of what both ways to a number are there."""
        gaps = []
        if not {"value", "output"} & {*self.absent}:
            gaps.append(float(np.abs(self.context(head) - self.output[head]).max()))
        if not {"query", "key"} & {*self.absent}:
            gaps += gaps_of_steps(self.steps, self.changed(steps={}), head)
        return largest(gaps)

    def _require(self, name: AttentionVector) -> None:
        if name in self.absent:
            raise NotRecordedError(name, self.module or self.name, self.recorded)
