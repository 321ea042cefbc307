"""What happens in the engine, to be counted and logged. No event holds a visitor's text."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Loaded:
    """A model was loaded."""

    model: str
    seconds: float
    bytes: int


@dataclass(frozen=True)
class Found:
    """A trace was asked for; hit: it was in the cache."""

    model: str
    hit: bool


@dataclass(frozen=True)
class Passed:
    """A pass was run; `waited` is its time in the queue."""

    model: str
    tokens: int
    seconds: float
    waited: float


@dataclass(frozen=True)
class Refused:
    """A model or a trace was refused; `kind` is the class of the error."""

    model: str
    kind: str


Event = Loaded | Found | Passed | Refused
