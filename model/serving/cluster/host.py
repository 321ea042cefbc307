"""One model on the cluster: an actor with an engine of its own, which many replicas of the app ask.

What is asked waits in the engine's queue, in which visitors take turns, whichever replica they use. Results
are checked here. Whoever asks for something keeps asking for its place meanwhile; where nobody has asked for
a while, the replica is gone, and the work ends.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import ray

from model.analysis.tokens.live_writing import GrowingRows
from model.run.model import Model
from model.serving.cluster.far_model import OF_TOKENIZER, Description, of_tokenizer
from model.serving.cluster.messages import DESCRIBE, READ, TRACE, Answer, Bounds, Caller
from model.serving.cluster.outline import at, outline_of, record_at, records_of
from model.serving.cluster.travelling import NotReadError, read, written
from model.serving.engine import Background, Engine, Request
from model.serving.events import Event, Found, facts
from model.serving.holdings import NOT_LOADED, Load
from model.serving.loaded_models import model_size
from model.system import allocator
from model.system.clicks import click, clicked
from model.system.elsewhere import TURN, asked_function, takes_turns
from model.trace.arrays import Array
from model.trace.trace import Trace

SECONDS_BETWEEN_LOOKS = 5.0


class LeftError(Exception):
    """Nobody waits for this work any more."""


@dataclass
class _Ticket:
    """Something that was asked."""

    caller: Caller
    unseen_seconds: float
    seen: float = field(default_factory=time.monotonic)
    place: int = 0
    left: bool = False
    events: list[Event] = field(default_factory=list)
    news: tuple[str, float | None] = ("", None)
    generator: Iterator[Any] | None = None
    traces: list[Trace] = field(default_factory=list)  # those that were read for it
    references: dict[int, object] = field(
        default_factory=dict
    )  # what stands for these and their records
    rows: GrowingRows | None = None  # of a text that it writes

    def still_wanted(self) -> None:
        if self.left or time.monotonic() - self.seen > self.unseen_seconds:
            raise LeftError

    def stand(self, place: int) -> None:
        self.place = place

    def tell(self, sentence: str, share: float | None) -> None:
        self.news = (sentence, share)

    def refer(self, value: Any) -> object:
        """What stands for the model, a trace or a record of one; None: it travels itself."""
        if isinstance(value, GrowingRows):
            self.rows = value
            return ("rows",)
        return ("model",) if isinstance(value, Model) else self.references.get(id(value))


_current: ContextVar[_Ticket | None] = ContextVar("ticket", default=None)


class ModelHost:
    """The actor of one model. It loads it when it is first asked, so one that has died begins anew."""

    def __init__(self, model: str, bounds: Bounds) -> None:
        allocator.reuse()
        self._model, self._bounds = model, bounds
        self._engine = Engine(
            bounds.model_bytes,
            bounds.trace_bytes,
            wanted=_still_wanted,
            visitor=lambda: getattr(_current.get(), "caller", Caller("", "")).visitor,
            tell=self._note,
        )
        self._tickets: dict[str, _Ticket] = {}
        self._asked = self._began = time.monotonic()
        self._failed = 0
        threading.Thread(target=self._end_when_idle, name="idle", daemon=True).start()

    @ray.method(concurrency_group="control")
    def ready(self) -> None:
        """Returns once the actor has started."""

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
        """Ends what was asked, in the middle of a pass too."""
        if (found := self._tickets.get(ticket)) is not None:
            found.left = True
            if found.generator is not None:
                del self._tickets[ticket]

    @ray.method(concurrency_group="control")
    def load(self) -> Load:
        """How it is doing. This is no use of it."""
        now = time.monotonic()
        kept = next(iter(self._engine.loads()), Load(self._model, *NOT_LOADED))
        return kept._replace(
            under_way=len(self._tickets),
            idle=now - self._asked,
            failed=self._failed,
            runs=now - self._began,
        )

    def rows(self, ticket: str, name: str, head: int) -> Array | None:
        """The weights of a head while a text is written; None where they are not held any more."""
        found = self._tickets.get(ticket)
        return None if found is None or found.rows is None else found.rows.weights(name, head)

    def answer(self, caller: Caller, asked: bytes) -> Answer:
        """What is asked: the name of a function and its arguments."""
        ticket = self._tickets[caller.ticket] = _Ticket(caller, self._bounds.unseen_seconds)
        return self._answered(ticket, lambda: self._result(ticket, asked))

    def step(self, ticket: str) -> Answer:
        """The next value of a generator."""
        found = self._tickets.get(ticket)
        if found is None or found.generator is None:
            return Answer("left")
        found.seen = time.monotonic()
        return self._answered(found, lambda: found.generator)

    def _answered(self, ticket: _Ticket, work: Callable[[], Any]) -> Answer:
        with clicked(ticket.caller.click):
            return self._worked(ticket, work)

    def _worked(self, ticket: _Ticket, work: Callable[[], Any]) -> Answer:
        token, began = _current.set(ticket), time.perf_counter()
        self._asked = time.monotonic()
        kind, value = "left", None
        try:
            value = work()
            if isinstance(value, Iterator):
                ticket.generator, kind = value, "more"
                value = next(value)
            else:
                kind = "value"
        except StopIteration:
            kind, value = "end", None
        except LeftError:
            kind = "left"
        except ValueError as refusal:
            kind, value = "refusal", refusal
        except BaseException:
            self._failed += 1
            self._tickets.pop(ticket.caller.ticket, None)
            raise
        finally:
            _current.reset(token)
            self._asked = time.monotonic()
        if kind != "more":
            self._tickets.pop(ticket.caller.ticket, None)
        sent = written(value, ticket.refer)
        events, ticket.events = tuple(ticket.events), []
        seconds = time.perf_counter() - began
        return Answer(kind, sent, events, self._engine.holdings.waiting, seconds)

    def _result(self, ticket: _Ticket, asked: bytes) -> Any:
        function, given = read(asked, partial(self._found, ticket))
        match function, given:
            case (name, {}) if name == DESCRIBE:
                model = self._engine.model(self._model, ticket.tell)
                return Description.of(model, model_size(model))
            case (name, {"request": Request() as request}) if name == TRACE:
                return outline_of(self._trace(ticket, request))
            case (name, {"request": Request() as request, "path": path}) if name == READ:
                return at(self._trace(ticket, request), path)
            case (name, {"target": int(target), "name": str(of), "given": given}) if (
                name == OF_TOKENIZER
            ):
                return of_tokenizer(self._engine.model(self._model, ticket.tell), target, of, given)
        called = asked_function(function)
        if takes_turns(called):
            given = given | {TURN: partial(self._turn, ticket)}
        return called(**given)

    def _turn(self, ticket: _Ticket) -> Any:
        """A turn in the queue, for a part of long work."""
        caller = ticket.caller
        background = Background(caller.visitor, ticket.still_wanted) if caller.background else None
        return self._engine.turn(ticket.stand, background)

    def _trace(self, ticket: _Ticket, request: Request) -> Trace:
        """The trace of a request, made anew where it is not kept."""
        if request.model != self._model:
            raise ValueError("This actor has another model.")
        trace = self._engine.trace(request, ticket.stand)
        ticket.place = 0
        if id(trace) not in ticket.references:
            ticket.traces.append(trace)
            ticket.references[id(trace)] = "trace", request
            records = records_of(trace).items()
            ticket.references.update({one: ("record", request, path) for one, path in records})
        return trace

    def _found(self, ticket: _Ticket, reference: Any) -> Any:
        match reference:
            case ("model",):
                return self._engine.model(self._model, ticket.tell)
            case ("tokenizer", target):
                model = self._engine.model(self._model, ticket.tell)
                return (model.tokenizer, model.target_tokenizer)[target]
            case ("trace", Request() as request):
                return self._trace(ticket, request)
            case ("record", Request() as request, path):
                return record_at(self._trace(ticket, request), path)
        raise NotReadError(f"{reference!r} refers to nothing here.")

    def _note(self, event: Event) -> None:
        if not isinstance(event, Found):
            line = {
                "event": type(event).__name__.lower(),
                "click": click(),
                "process": os.getpid(),
            } | facts(event)
            print(json.dumps(line), file=sys.stderr, flush=True)  # into the logs of the cluster
        if (ticket := _current.get()) is not None:
            ticket.events.append(event)

    def _end_when_idle(self) -> None:
        """Ends this actor where nothing was asked for long; its room is then free for another model."""
        while True:
            time.sleep(SECONDS_BETWEEN_LOOKS)
            allocator.give_back_spare()
            now = time.monotonic()
            for name, ticket in list(self._tickets.items()):  # generators that nobody asks to go on
                if ticket.generator is not None and now - ticket.seen > ticket.unseen_seconds:
                    self._tickets.pop(name, None)
            if not self._tickets and now - self._asked > self._bounds.idle_seconds:
                ray.kill(ray.get_runtime_context().current_actor, no_restart=True)


def _still_wanted() -> None:
    if (ticket := _current.get()) is not None:
        ticket.still_wanted()
