"""One model on the cluster: an actor with an engine of its own, which many replicas of the app ask.

Questions wait in the engine's queue, in which visitors take turns, whichever replica they use. Results are
checked here. Whoever asks keeps asking for the place meanwhile; where nobody has done so for a while, the
replica is gone, and the work ends.
"""

import json
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import ray

from model.hub.tokenizer import HubTokenizer
from model.run.model import Model
from model.serving.cluster.far_model import ModelDescription, of_tokenizer, reference_of
from model.serving.cluster.far_trace import KINDS, TraceSource, at, outline, record_at
from model.serving.cluster.messages import (
    DESCRIBE,
    READ,
    TOKENIZER,
    TRACE,
    Bounds,
    Caller,
    Message,
    Reply,
    read,
    written,
)
from model.serving.engine import (
    NOT_LOADED,
    Background,
    CacheLookup,
    Engine,
    Event,
    Load,
    Request,
    facts,
)
from model.system import allocator
from model.system.clicks import click, clicked
from model.system.remote import TURN, asked_function, takes_turns
from model.trace.records import Attention, ExpertsRecord, FeedForwardRecord, NormRecord
from model.trace.trace import Trace
from model.trace.unproven import proven

SECONDS_BETWEEN_LOOKS = 5.0


class AbandonedError(Exception):
    """Nobody waits for this work any more."""


@dataclass
class _Ticket:
    """A question under way."""

    caller: Caller
    unseen_seconds: float
    seen: float = field(default_factory=time.monotonic)
    place: int = 0
    left: bool = False
    events: list[Event] = field(default_factory=list)
    news: tuple[str, float | None] = ("", None)
    generator: Iterator[Any] | None = None

    def still_wanted(self) -> None:
        if self.left or time.monotonic() - self.seen > self.unseen_seconds:
            raise AbandonedError

    def stand(self, place: int) -> None:
        self.place = place

    def tell(self, sentence: str, share: float | None) -> None:
        self.news = (sentence, share)


_current: ContextVar[_Ticket | None] = ContextVar("ticket", default=None)


class ModelHost:
    """The actor of one model. It loads it when it is first asked, so one that has died begins anew."""

    def __init__(self, model: str, bounds: Bounds, memory: int) -> None:
        """memory: bytes that it reserves on its machine."""
        allocator.reuse()
        self._name, self._bounds, self._memory = model, bounds, memory
        self._engine = Engine(
            bounds.model_bytes,
            bounds.trace_bytes,
            wanted=_still_wanted,
            visitor=lambda: getattr(_current.get(), "caller", Caller("", "")).visitor,
            tell=_note,
        )
        self._tickets: dict[str, _Ticket] = {}
        self._references: weakref.WeakKeyDictionary[Any, object] = (
            weakref.WeakKeyDictionary()
        )  # of traces, records
        self._asked = self._began = time.monotonic()
        self._failed = 0
        idle = partial(_end_when_idle, weakref.ref(self))  # a thread would keep all that it holds
        threading.Thread(target=idle, name="idle", daemon=True).start()

    @ray.method(concurrency_group="control")
    def place(self, ticket: str) -> tuple[int, tuple[str, float | None]]:
        """The place in the queue, 0: in none, and how far a model's loading is; and the sign that somebody
        waits for it."""
        found = self._tickets.get(ticket)
        if found is None:
            return 0, ("", None)
        found.seen = self._asked = time.monotonic()
        return found.place, found.news

    @ray.method(concurrency_group="control")
    def leave(self, ticket: str) -> None:
        """Ends a question, in the middle of a pass too."""
        if (found := self._tickets.get(ticket)) is not None:
            found.left = True
            if found.generator is not None:
                del self._tickets[ticket]

    @ray.method(concurrency_group="control")
    def load(self) -> Load:
        """How it is doing. This is no use of it."""
        now = time.monotonic()
        kept = next(iter(self._engine.loads()), Load(self._name, *NOT_LOADED))
        return kept._replace(
            under_way=len(self._tickets),
            idle=now - self._asked,
            failed=self._failed,
            runs=now - self._began,
        )

    @ray.method(concurrency_group="control")
    def report(self) -> tuple[str, int, Load]:
        """Ray's name for its machine, the memory that it reserves there, and how it is doing."""
        return ray.get_runtime_context().get_node_id(), self._memory, self.load()

    def answer(self, caller: Caller, sent: Message) -> Reply:
        """The answer to a question: the name of a function and its arguments."""
        ticket = self._tickets[caller.ticket] = _Ticket(caller, self._bounds.unseen_seconds)
        return self._answered(ticket, lambda: self._result(ticket, sent))

    def step(self, ticket: str) -> Reply:
        """The next value of a generator."""
        found = self._tickets.get(ticket)
        if found is None or found.generator is None:
            return Reply("left")
        found.seen = time.monotonic()
        return self._answered(found, lambda: found.generator)

    def _answered(self, ticket: _Ticket, work: Callable[[], Any]) -> Reply:
        token, kind, value = _current.set(ticket), "value", None
        self._asked = time.monotonic()
        try:
            with clicked(ticket.caller.click):
                value = work()
                if isinstance(value, Iterator):
                    ticket.generator, kind = value, "more"
                    value = next(value)
        except StopIteration:
            kind, value = "end", None
        except AbandonedError:
            kind = "left"
        except ValueError as refusal:
            kind, value = "refusal", refusal
        except BaseException:
            self._failed += 1
            kind = "failed"
            raise
        finally:
            _current.reset(token)
            self._asked = time.monotonic()
            if kind != "more":
                self._tickets.pop(ticket.caller.ticket, None)
        sent = written(value, partial(self._reference, ticket))
        events, ticket.events = tuple(ticket.events), []
        return Reply(kind, sent, events, self._engine.holdings.waiting)

    def _result(self, ticket: _Ticket, sent: Message) -> Any:
        function, given = read(sent, partial(self._resolved, ticket))
        if (answer := self._own(ticket).get(function)) is not None:
            return answer(**given)
        called = asked_function(function)
        if takes_turns(called):
            given[TURN] = partial(self._turn, ticket)
        return called(**given)

    def _own(self, ticket: _Ticket) -> Mapping[str, Callable[..., Any]]:
        """The questions beside the functions of `elsewhere`."""
        return {
            DESCRIBE: lambda: ModelDescription.of(self._model(ticket)),
            TRACE: lambda request: outline(self._trace(ticket, request), request),
            READ: lambda request, path: at(self._trace(ticket, request), path, request),
            TOKENIZER: lambda **given: of_tokenizer(self._model(ticket), **given),
        }

    def _model(self, ticket: _Ticket) -> Model:
        return self._engine.model(self._name, ticket.tell)

    def _turn(self, ticket: _Ticket) -> Any:
        """A turn in the queue, for a part of long work."""
        caller = ticket.caller
        background = Background(caller.visitor, ticket.still_wanted) if caller.background else None
        return self._engine.turn(ticket.stand, background)

    def _trace(self, ticket: _Ticket, request: Request) -> Trace:
        """The trace of a request, made anew where it is not kept."""
        if request.model != self._name:
            raise ValueError("This actor has another model.")
        trace = self._engine.trace(request, ticket.stand)
        ticket.place = 0
        if trace not in self._references:
            for kind in KINDS:
                for number, record in enumerate(proven(getattr(trace, kind))):
                    self._references[record] = "record", request, (kind, number)
            self._references[trace] = "trace", request
        return trace

    def _reference(self, ticket: _Ticket, value: Any) -> object:
        """What stands for the model, its tokenizers, a trace or a record of one; None: it travels itself."""
        match value:
            case TraceSource():
                return "source", value.request
            case HubTokenizer():
                return reference_of(value, self._model(ticket))
            case Model():
                return ("model",)
            case Trace() | Attention() | NormRecord() | FeedForwardRecord() | ExpertsRecord():
                return self._references.get(value)
        return None

    def _resolved(self, ticket: _Ticket, reference: Any) -> Any:
        match reference:
            case ("model",):
                return self._model(ticket)
            case ("trace", Request() as request):
                return self._trace(ticket, request)
            case ("record", Request() as request, path):
                return record_at(self._trace(ticket, request), path)
        raise ValueError(f"{reference!r} refers to nothing here.")

    def give_back(self) -> None:
        """Returns memory that is not used any more to the system."""
        self._engine.give_back()

    def is_idle(self) -> bool:
        """Whether nobody asked for long. Forgets generators that nobody asks to go on."""
        now = time.monotonic()
        for name, ticket in list(self._tickets.items()):
            if ticket.generator is not None and now - ticket.seen > ticket.unseen_seconds:
                self._tickets.pop(name, None)
        return not self._tickets and now - self._asked > self._bounds.idle_seconds


def _end_when_idle(host: "weakref.ref[ModelHost]") -> None:
    """Ends an actor where nobody asked for long; its room is then free for another model."""
    while (there := host()) is not None:
        if there.is_idle():
            ray.kill(ray.get_runtime_context().current_actor, no_restart=True)
        there.give_back()
        del there
        time.sleep(SECONDS_BETWEEN_LOOKS)


def _still_wanted() -> None:
    if (ticket := _current.get()) is not None:
        ticket.still_wanted()


def _note(event: Event) -> None:
    """Into the logs of the cluster, and to the app that asks, which counts itself what it finds."""
    if isinstance(event, CacheLookup):
        return
    line = {"event": type(event).__name__.lower(), "click": click(), "process": os.getpid()}
    print(json.dumps(line | facts(event)), file=sys.stderr, flush=True)
    if (ticket := _current.get()) is not None:
        ticket.events.append(event)
