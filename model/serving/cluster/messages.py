"""What an app and the actors of models tell each other, beside what `travelling` writes."""

from typing import NamedTuple

from model.serving.events import Event

DESCRIBE, TRACE, READ = "describe", "trace", "read"  # asked beside the functions of `elsewhere`


class Bounds(NamedTuple):
    """What the app that opens a model decides for its actor."""

    model_bytes: int
    trace_bytes: int
    idle_seconds: float  # without anything asked, after which the actor ends
    unseen_seconds: float = 20.0  # after which whoever asked is taken to be gone


class Caller(NamedTuple):
    """Who asks. click: names the visitor's act in the logs of both sides."""

    ticket: str
    visitor: str
    background: bool = False
    click: str = ""


class Answer(NamedTuple):
    """What is sent back. kind: "value", "refusal", or "more": a generator that waits for `step`; "end" of
    one; "left": nobody waited for it any more."""

    kind: str
    sent: bytes = b""
    events: tuple[Event, ...] = ()
    waiting: int = 0  # in the queue of this model
    seconds: float = 0.0  # of the work here
