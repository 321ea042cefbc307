"""One call of attention as it was seen in a pass, with its heads and texts laid out as rows."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from model.capture.batches import Rows
from model.capture.node import UnreadableError

PARTS = (
    "It reads its input in {} parts, such as windows, rows or frames: this is part {}, counted from 0, and "
    "`batch=` chooses it."
)
LATER = "Its queries are tokens {} to {} of the text, counted from 0."
_BY_QUERY = ("query", "output", "weights", "forbidden", "added", "sinks")


@dataclass(frozen=True, eq=False)
class Seen:
    """A row is a head of a text. Axes: N rows, T queries, S keys, D width."""

    query: Tensor  # (N, T, D)
    key: Tensor  # (N, S, D)
    value: Tensor  # (N, S, D)
    output: Tensor  # (N, T, D): the module's own
    weights: Tensor | None  # (N, T, S): the module's own, where it computed some
    scale: float
    cap: float | None
    forbidden: Tensor | None  # (N, T, S) or stretching to it
    fills: tuple[float, ...]  # what forbidden scores became
    added: Tensor | None  # to the scaled scores, (N, T, S) or stretching to it
    sinks: Tensor | None  # (N, T): the score of one more column
    rows: Rows  # which text each row belongs to
    crosses: bool
    doubts: tuple[str, ...] = ()

    def of_text(self, number: int) -> "Seen":
        """The rows of one text, or of one part. Raises UnreadableError where there are fewer."""
        at = torch.nonzero(self.rows.texts == number)[:, 0]
        count = int(self.rows.texts.max()) + 1
        if not len(at):
            raise UnreadableError(
                f"it reads {count} text{'s' * (count > 1)} at once, and batch is {number}, counted from 0"
            )
        doubts = (PARTS.format(count, number), *self.doubts) if self.rows.in_parts else self.doubts
        cells: dict[str, Any] = {}
        for name in (*_BY_QUERY, "key", "value"):
            tensor: Tensor | None = getattr(self, name)
            if tensor is not None:
                cells[name] = tensor[at.to(tensor.device)] if len(tensor) > 1 else tensor
        return replace(self, **cells, rows=self.rows.of(at), doubts=doubts)

    def after(self, other: "Seen") -> "Seen | None":
        """Both in one, where the queries of this are the next tokens after those of the other, and the keys
        are the same; else None."""
        before, own = other.rows.places, self.rows.places
        next_ones = [
            axis
            for axis in before.keys() & own.keys()
            if bool((own[axis][:, 0] == before[axis][:, -1] + 1).all())
            and (before[axis].shape[1] == 1 or bool((before[axis] != before[axis][:, :1]).any()))
        ]
        same = all(
            one.shape == also.shape and torch.equal(one, also)
            for one, also in ((self.key, other.key), (self.value, other.value))
        )
        if not (next_ones and same) or (self.scale, self.cap) != (other.scale, other.cap):
            return None
        cells: dict[str, Any] = {name: _joined(other, self, name) for name in _BY_QUERY}
        places = {
            axis: torch.cat([before[axis], own[axis]], 1) for axis in before.keys() & own.keys()
        }
        return replace(
            self,
            **cells,
            rows=replace(self.rows, places=places),
            fills=(*other.fills, *self.fills),
            doubts=tuple(dict.fromkeys((*other.doubts, *self.doubts))),
        )

    @property
    def doubt(self) -> str:
        """What is not certain, in sentences."""
        moving = [one[0] for one in self.rows.places.values() if len(one[0].unique()) > 1]
        first, last = (int(moving[0][at]) for at in (0, -1)) if len(moving) == 1 else (0, 0)
        is_later = first > 0 and last - first + 1 == len(moving[0]) and not self.rows.in_parts
        return " ".join((*self.doubts, *([LATER.format(first, last)] if is_later else [])))


def _joined(before: Seen, after: Seen, name: str) -> Tensor | None:
    """Cells of two records, one behind the other along the queries; None has zeros."""
    parts = getattr(before, name), getattr(after, name)
    known: Tensor | None = next((one for one in parts if one is not None), None)
    if known is None:
        return None
    rows, width = max(len(before.query), len(known)), known.shape[2:]
    cells = [
        (torch.zeros_like(known[:, :1]) if one is None else one).expand(
            rows, of.query.shape[1], *width
        )
        for one, of in zip(parts, (before, after), strict=True)
    ]
    return torch.cat(cells, 1)
