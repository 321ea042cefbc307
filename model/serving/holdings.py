"""What an engine keeps, and what it has put away."""

from dataclasses import dataclass
from typing import NamedTuple


class Eviction(NamedTuple):
    """A model that was unloaded to make room for another one."""

    name: str
    newcomer: str


@dataclass(frozen=True)
class Holdings:
    """What an engine keeps at one moment."""

    models: tuple[str, ...]
    model_bytes: int
    traces: int
    trace_bytes: int
    waiting: int  # in the queue for passes
