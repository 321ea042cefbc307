"""The engine of an app whose models run on a cluster. Views cannot tell it from one that runs them here."""

import math
import secrets
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

from model.download.wheel import Progress
from model.loading.registry import known, silent
from model.serving.cluster.actors import NOT_REACHED, Actors, ClusterError
from model.serving.cluster.messages import (
    DESCRIBE,
    READ,
    TRACE,
    Bounds,
    Caller,
    Message,
    Reply,
    read,
    written,
)
from model.serving.engine import Background, CacheLookup, Engine, Load, Request
from model.serving.trace_files import opens_file
from model.system.clicks import click
from model.system.fair_cache import FairCache
from model.system.remote import Remote
from model.system.settings import MEGABYTE, settings
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model

Waiting = Callable[[int], object]
_turn: ContextVar[tuple[Waiting, Background | None] | None] = ContextVar("turn", default=None)


class ClusterEngine(Engine):
    """As `Engine`, but models and traces lie with actors of a Ray cluster, and small answers travel. Answers
    are kept here as they came, within the bound for traces. Trace files are opened here."""

    def __init__(self, address: str, **how: Any) -> None:
        """address: of the cluster. how: as `Engine`."""
        super().__init__(**how)
        bounds = settings()
        trace_bytes = bounds.trace_bytes
        self._actors = Actors(
            address,
            Bounds(bounds.model_megabytes * MEGABYTE, trace_bytes, bounds.cluster_idle),
            copies=bounds.cluster_copies,
            gpus=bounds.cluster_gpus,
        )
        self._far: dict[str, Model] = {}
        self._answers: FairCache[Hashable, Message] = FairCache(
            trace_bytes, lambda sent: sent.nbytes, visitor=self._visitor
        )
        self._replica = secrets.token_hex(8)

    def has(self, name: str) -> bool:
        return super().has(name) if opens_file(name) else name in self._far

    def model(self, name: str, progress: Progress) -> "Model":
        if opens_file(name):
            return super().model(name, progress)
        known(name)  # the owner of this app decides what it opens
        with self._keys.held(name, self._wanted), self._refusals(name):
            if name not in self._far:
                from model.serving.cluster.far_model import FarModel

                about = self._asked(name, DESCRIBE, {}, key=name, tell=progress)
                run = partial(self.trace, waiting=lambda place: None)
                self._far[name] = FarModel(name, about, partial(self.question, name), run)
            return self._far[name]

    def prepare(self, name: str) -> None:
        self.model(name, silent)

    def trace(self, request: Request, waiting: Waiting) -> Trace:
        if opens_file(request.model):
            return super().trace(request, waiting)
        from model.serving.cluster.far_trace import far_trace

        self.model(request.model, silent)
        key = TRACE, request
        self._tell(CacheLookup(request.model, self._known(self._answers, key) is not None))
        with self._keys.held(request, self._wanted), self._refusals(request.model):
            given = {"request": request}
            fields = self._once(key, request.model, TRACE, given, key=request, waiting=waiting)
        return far_trace(**fields)

    def loads(self) -> list[Load]:
        return self._actors.loads()

    def can_keep(self, trace: Trace) -> bool:
        return trace.nbytes <= self._answers.maxsize

    @contextmanager
    def turn(
        self,
        waiting: Waiting = lambda place: None,
        background: Background | None = None,
        *,
        work: float = math.inf,
    ) -> Iterator[None]:
        """What is asked of the cluster in the body waits there for its turn, under this visitor's name.

        Args:
            waiting: is told the place in the queue.
            background: None: the work is for the page itself.
            work: as in `Engine.turn`.
        """
        with super().turn(waiting, background, work=work):
            token = _turn.set((waiting, background))
            try:
                yield
            finally:
                _turn.reset(token)

    def part(self, request: Request, path: tuple[Any, ...]) -> Any:
        """What lies at a path of a trace."""
        given = {"request": request, "path": path}
        return self._once((request, path), request.model, READ, given, key=request)

    def question(self, model: str, function: str, given: Mapping[str, Any]) -> Any:
        """As `Remote.ask`. What follows from a model or a trace alone is asked once.

        Args:
            model: its name.
            function: its name there.
            given: the function's arguments; a model or a trace of the cluster travels as a reference.
        """
        references = {name: _reference(one) for name, one in given.items()}
        runs = [one[1] for one in references.values() if one is not None and len(one) > 1]
        about = ((name, references[name] or one) for name, one in given.items())
        key = next((one for one in runs if isinstance(one, Request)), model)
        return self._once((model, function, *about), model, function, given, key=key)

    def _once(
        self, of: Hashable, model: str, function: str, given: Mapping[str, Any], **how: Any
    ) -> Any:
        """The answer to a question, from what is kept where it has been answered before."""
        try:
            sent = self._known(self._answers, of)
        except TypeError:  # arguments that cannot be compared
            return self._asked(model, function, given, **how)
        if sent is not None:
            return read(sent, partial(self._resolved, model))
        return self._asked(
            model, function, given, keep=partial(self._keep, self._answers, of), **how
        )

    def _asked(
        self,
        model: str,
        function: str,
        given: Mapping[str, Any],
        *,
        key: Hashable,
        waiting: Waiting | None = None,
        tell: Progress = silent,
        keep: Callable[[Message], object] = lambda sent: None,
    ) -> Any:
        """The answer of a model's actor. One that dies meanwhile is asked again when it has come back.

        Args:
            key: where answers about it were computed before, this one is asked for too.
            waiting: is told the place in the queue.
            tell: is told how far a model's loading is.
            keep: takes the message of an answer that is whole.
        """
        self._actors.join()  # which says what Ray reads when it is imported
        from model.serving.cluster.asking import Asking

        shown, background = _turn.get() or (lambda place: None, None)
        work = background or Background(self._visitor(), self._wanted)
        ticket, visitor = secrets.token_hex(12), f"{self._replica}/{work.visitor}"
        caller = Caller(ticket, visitor, background is not None, click())
        asking = Asking(
            self._actors, model, caller, work.wanted, waiting or shown, tell, self._tell
        )
        actor, answer = asking.first(written((function, dict(given)), _reference), key)
        value = partial(self._value, model)
        if answer.kind == "more":
            return (value(one) for one in asking.steps(actor, answer))
        if answer.kind == "value":
            keep(answer.sent)
        return value(answer)

    def _value(self, model: str, answer: Reply) -> Any:
        value = read(answer.sent, partial(self._resolved, model))
        if answer.kind == "refusal":
            raise value
        return value

    def _resolved(self, model: str, reference: Any) -> Any:
        """What stands here for something that stays on the cluster."""
        from model.serving.cluster.far_model import FarTokenizer
        from model.serving.cluster.far_trace import TraceSource

        match reference:
            case ("model",):
                return self._far[model]
            case ("tokenizer", *_):
                return FarTokenizer(partial(self.question, model), reference)
            case ("source", Request() as request):
                return TraceSource(request, self)
            case ("trace", Request() as request):
                return self.trace(request, lambda place: None)
            case ("record", Request() as request, (kind, number)):
                return getattr(self.trace(request, lambda place: None), kind)[number]
        raise ClusterError(NOT_REACHED)


def _reference(value: Any) -> Any:
    return value.reference if isinstance(value, Remote) else None
