"""What happens in the engine, as plain values for whoever counts or logs. None holds a visitor's text."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Loaded:
    """A model was loaded."""

    model: str
    seconds: float
    bytes: int


@dataclass(frozen=True)
class Found:
    """A trace was asked for: it was there already, or it had to be made."""

    model: str
    hit: bool


@dataclass(frozen=True)
class Passed:
    """A pass was run; `waited` is the time in line before it."""

    model: str
    tokens: int
    seconds: float
    waited: float


@dataclass(frozen=True)
class Refused:
    """A model or a trace was refused; `kind` is the name of the error's class, not its sentence."""

    model: str
    kind: str


Event = Loaded | Found | Passed | Refused
