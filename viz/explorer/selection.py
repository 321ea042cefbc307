"""The chosen cell."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from viz.notation.formulas import StageName

Detail = Literal["simple", "full"]  # how much is shown


def _names(of: object) -> Iterator[str]:
    """The words of a union of literals."""
    for part in get_args(of):
        yield from [part] if isinstance(part, str) else _names(part)


STAGES: tuple[str, ...] = tuple(_names(StageName))


@dataclass(frozen=True)
class Selection:
    """One cell: a head, a stage, a query token and a key token. All count from 0."""

    head: int = 0
    stage: str = "weights"
    query: int = 0
    key: int = 0

    def clamped(self, *, heads: int, queries: int, keys: int) -> "Selection":
        """The nearest selection that exists; an unknown stage becomes the weights."""
        return Selection(
            head=_within(self.head, heads),
            stage=self.stage if self.stage in STAGES else "weights",
            query=_within(self.query, queries),
            key=_within(self.key, keys),
        )


def _within(number: int, count: int) -> int:
    return min(max(number, 0), max(count - 1, 0))
