"""A trace on the cluster, as views read it: large arrays stay there until they are first read."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np

from model.nn.config import Stack
from model.serving.engine import Request
from model.system.remote import Remote
from model.trace.arrays import Array, holds_arrays
from model.trace.blocks import of_query
from model.trace.lazy import Lazy, LazyArrays, LazyStates, shapes_of
from model.trace.records import Attention, ExpertsRecord, FeedForwardRecord, NormRecord, Token
from model.trace.trace import Logits, Trace, Vocabulary
from model.trace.unproven import proven, proven_states

FieldPath = tuple[
    Any, ...
]  # ("attention", 3, "vectors"), ("residual", "decoder", 2), ("logits", 4, 5)
SMALL = 2_000_000  # bytes of a trace that travels whole: to ask for each part takes longer
TOGETHER = 64  # rows of logits that travel at once


class Asks(Protocol):
    """The engine of an app."""

    def part(self, request: Request, path: FieldPath) -> Any: ...

    def question(self, model: str, function: str, given: Mapping[str, Any]) -> Any: ...


class TraceSource:
    """The way to the trace of a request. It travels as a reference: an actor has no engine to ask."""

    def __init__(self, request: Request, engine: Asks | None = None) -> None:
        self.request, self._engine = request, engine

    def read(self, *path: Any) -> Any:
        """What `at` gives for a path."""
        return self._there().part(self.request, path)

    def rows(self, tokens: int, wanted: slice) -> Array:
        """(token, vocabulary): rows of logits, a few at a time."""
        first, end, _ = wanted.indices(tokens)
        starts = range(first, end, TOGETHER)
        parts = [self.read("logits", one, min(one + TOGETHER, end)) for one in starts]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def named(self, ids: Sequence[int]) -> tuple[Token, ...]:
        """The tokens of ids."""
        return tuple(self.read("vocabulary", *map(int, ids)))

    def ask(self, function: str, given: Mapping[str, Any]) -> Any:
        """As `Remote.ask`."""
        return self._there().question(self.request.model, function, given)

    def _there(self) -> Asks:
        if self._engine is None:
            raise ValueError("A trace is read by the app that asked for it.")
        return self._engine


class FarTrace(Trace, Remote):
    """The trace of a request."""

    source_: TraceSource
    nbytes_: int

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays on the cluster."""
        return self.nbytes_

    @property
    def reference(self) -> Any:
        return "trace", self.source_.request

    def ask(self, function: str, given: Mapping[str, Any]) -> Any:
        return self.source_.ask(function, given)

    @cached_property
    def _check(self) -> float:
        return float(self.source_.read("check"))


class FarRecord(Remote):
    """A record of a trace there. Its fields are those of its kind; arrays among them are lazy, but those
    that are small."""

    source_: TraceSource
    path: FieldPath
    check_: float | None = None  # where the record travelled whole

    @property
    def reference(self) -> Any:
        return "record", self.source_.request, self.path

    def ask(self, function: str, given: Mapping[str, Any]) -> Any:
        return self.source_.ask(function, given)

    def check(self) -> float:
        known = self.check_
        return float(self.source_.read(*self.path, "check")) if known is None else known


class FarAttention(FarRecord, Attention):
    def at_query(self, query: int) -> Attention | None:
        if len(self.path) > 2 or not isinstance(vars(self)["vectors"], Lazy):
            return None
        row: Attention = self.source_.read(*self.path, "query", query)
        return row


class FarNorm(FarRecord, NormRecord):
    pass


class FarFeedForward(FarRecord, FeedForwardRecord):
    pass


class FarExperts(FarRecord, ExpertsRecord):
    pass


# By the fields of a trace.
KINDS: Mapping[str, type[Any]] = {
    "attention": FarAttention,
    "norms": FarNorm,
    "feed_forward": FarFeedForward,
    "experts": FarExperts,
}
CHECKED = ("attention", "norms")
SMALL_FIELDS = {"sinks"}  # they travel with their record


def lazy_fields(kind: str) -> set[str]:
    """The fields whose arrays stay there, of the records in a field of a trace."""
    return {one.name for one in fields(KINDS[kind]) if holds_arrays(one.type)} - SMALL_FIELDS


def outline(trace: Trace, request: Request) -> dict[str, Any]:
    """The fields of a `FarTrace`: those of a trace, with lazy ones in place of its large arrays."""
    source, whole = TraceSource(request), trace.nbytes <= SMALL
    given = {one.name: getattr(trace, one.name) for one in fields(Trace)}
    for kind in KINDS:
        records = proven(given[kind])
        lazy = () if whole else lazy_fields(kind)
        given[kind] = tuple(_far(one, source, (kind, n), lazy) for n, one in enumerate(records))
        if whole and kind in CHECKED:
            for one, record in zip(given[kind], records, strict=True):
                vars(one).update(check_=record.check())
    given["residual"] = {
        stack: states if whole else _states(source, len(states), stack)
        for stack, states in proven_states(trace.residual).items()
    }
    given["summands"] = {
        stack: dict(parts) if whole else _arrays(source, parts, "summands", stack)
        for stack, parts in proven_states(trace.summands).items()
    }
    if not whole:
        given["written"] = _arrays(source, trace.written, "written")
    if trace.prediction is not None:
        shape = trace.prediction.shape
        given["prediction"] = Logits(shape, partial(source.rows, shape[0]))
    if trace.vocabulary is not None:
        given["vocabulary"] = Vocabulary(trace.vocabulary.size, source.named)
    about = {"source_": source, "nbytes_": trace.nbytes}
    return given | {"about": about | ({"_check": trace.check()} if whole else {})}


def far_trace(*, about: Mapping[str, Any], **given: Any) -> FarTrace:
    """The trace of an outline."""
    trace = FarTrace(**given)
    vars(trace).update(about)
    return trace


def at(trace: Trace, path: FieldPath, request: Request) -> Any:
    """What lies at a path of the trace of a request. Raises LookupError for a path that no trace has."""
    match path:
        case ("attention", int(), "query", int()):
            return _row(record_at(trace, path), TraceSource(request), path)
        case (str(kind), int(), *_, str(name)) if kind in KINDS:
            record = record_at(trace, path[:-1])
            if name == "check":
                return record.check()
            if name in lazy_fields(kind):
                return getattr(record, name)
        case ("residual", ("encoder" | "decoder") as stack, int(state)):
            return trace.residual[stack][state]
        case ("summands", ("encoder" | "decoder") as stack, str(name)):
            return trace.summands[stack][name]
        case ("written", str(name)):
            return trace.written[name]
        case ("logits", int(first), int(end)):
            return trace.require_prediction().rows(first, end)
        case ("vocabulary", *ids) if trace.vocabulary is not None:
            return trace.vocabulary.named(ids)
        case ("check",):
            return trace.check()
    raise LookupError(f"No trace has {path!r}.")


def record_at(trace: Trace, path: FieldPath) -> Any:
    """The record of a path: ("attention", 3), or ("attention", 3, "query", 5) for one of its queries."""
    kind, number, *query = path
    record = proven(getattr(trace, kind))[number]
    return of_query(record, query[1]) if query else record


def _far(record: Any, source: TraceSource, path: FieldPath, lazy: Container[str]) -> FarRecord:
    """A record of a trace as it travels."""
    kind = KINDS[path[0]]
    given = {one.name: vars(record)[one.name] for one in fields(record)}
    for name, value in given.items():
        if name in lazy and _holds(value):
            shapes = shapes_of(record, name) if name == "vectors" else ()
            given[name] = Lazy(partial(source.read, *path, name), shapes, travels=True)
    made: FarRecord = kind(**given)
    vars(made).update(source_=source, path=path)
    return made


def _row(record: Attention, source: TraceSource, path: FieldPath) -> FarRecord:
    """A sub-layer for one query: its scores travel, and what follows from them; the vectors stay."""
    scores = np.stack([record.scores(head) for head in range(record.heads)])
    with_scores = replace(record, steps={**record.steps, "scores": scores})
    return _far(with_scores, source, path, ("vectors", "output"))


def _holds(value: Any) -> bool:
    """Whether a field has numbers."""
    if isinstance(value, Lazy):
        return True
    return value.size > 0 if isinstance(value, np.ndarray) else bool(value)


def _there(source: TraceSource, *path: Any) -> Lazy[Array]:
    return Lazy(partial(source.read, *path), keeps=False, travels=True)


def _states(source: TraceSource, count: int, stack: Stack) -> LazyStates:
    return LazyStates(tuple(_there(source, "residual", stack, number) for number in range(count)))


def _arrays(source: TraceSource, names: Mapping[str, Any], *above: str) -> LazyArrays:
    return LazyArrays({name: _there(source, *above, name) for name in names})
