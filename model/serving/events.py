"""What happens in the engine, to be counted and logged. No event holds a visitor's text."""

from typing import NamedTuple


class Loaded(NamedTuple):
    """A model was loaded."""

    model: str
    seconds: float
    bytes: int


class Found(NamedTuple):
    """A trace was asked for; hit: it was in the cache."""

    model: str
    hit: bool


class Passed(NamedTuple):
    """A pass was run; `waited` is its time in the queue."""

    model: str
    tokens: int
    seconds: float
    waited: float


class Refused(NamedTuple):
    """A model or a trace was refused; `kind` is the class of the error."""

    model: str
    kind: str


Event = Loaded | Found | Passed | Refused
