"""One call of attention as it was seen in a pass, with its heads and texts laid out as rows."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from model.capture.node import UnreadableError

PARTS = (
    "It reads its input in {} parts, such as windows, rows or frames: this is part {}, counted from 0, and "
    "`batch=` chooses it."
)


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
    texts: Tensor  # (N,): the text of each row
    in_parts: bool  # the texts are read in parts, each with a number of its own in `texts`
    crosses: bool
    doubts: tuple[str, ...] = ()

    def of_text(self, number: int) -> "Seen":
        """The rows of one text, or of one part. Raises UnreadableError where there are fewer."""
        rows = torch.nonzero(self.texts == number)[:, 0].to(self.query.device)
        if not len(rows):
            raise UnreadableError(f"it reads {int(self.texts.max()) + 1} texts at once")
        cells: dict[str, Any] = {}
        for name in ("query", "key", "value", "output", "weights", "forbidden", "added", "sinks"):
            tensor: Tensor | None = getattr(self, name)
            if tensor is not None:
                cells[name] = tensor[rows] if len(tensor) > 1 else tensor
        doubts = self.doubts
        if self.in_parts:
            doubts = (PARTS.format(int(self.texts.max()) + 1, number), *doubts)
        return replace(self, **cells, texts=self.texts[rows.cpu()], doubts=doubts)
