"""What happens in the engine, to be counted and logged. No event holds a visitor's text."""

from typing import NamedTuple

from model.loading.registry import hub_models, models, untrained_models


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


def known(model: str) -> str:
    """A model's name if it is a public one, else "other": somebody typed it."""
    return model if model in {*models, *hub_models, *untrained_models} else "other"


def facts(happened: Event) -> dict[str, object]:
    """What a line of a log says of an event."""
    found: dict[str, object] = happened._asdict() | {"model": known(happened.model)}
    for seconds, name in (("seconds", "ms"), ("waited", "waited_ms")):
        if seconds in found:
            found[name] = round(1000 * getattr(happened, seconds), 1)
            del found[seconds]
    return found
