"""A trace that stays on the cluster, as views read it: each array travels when it is first read."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from model.serving.cluster.outline import LARGE, Outline, Path
from model.serving.engine import Request
from model.system.elsewhere import Elsewhere
from model.trace.arrays import Array
from model.trace.experts import ExpertsRecord
from model.trace.records import Attention, FeedForwardRecord, NormRecord, Token
from model.trace.trace import DeferredArrays, Logits, Trace
from model.trace.vocabulary import Vocabulary

Named = Callable[[Sequence[int]], tuple[Token, ...]]
ROWS = 64  # of logits that travel at once


class Source:
    """The way to a trace on the cluster."""

    def __init__(
        self,
        request: Request,
        read: Callable[[Path], Any],
        ask: Callable[[str, Mapping[str, Any]], Any],
    ) -> None:
        """read: what lies at a path of the trace. ask: as `Elsewhere.ask`."""
        self.request, self.read, self.ask = request, read, ask


class FarTrace(Trace, Elsewhere):
    """The trace of a request, which lies on the cluster."""

    source_: Source
    outline: Outline

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays on the cluster."""
        return self.outline.nbytes

    def ask(self, function: str, given: Mapping[str, Any]) -> Any:
        return self.source_.ask(function, given)

    @cached_property
    def _check(self) -> float:
        return float(self.source_.read(("check",)))


def far_trace(outline: Outline, source: Source, named: Named) -> FarTrace:
    """The trace of an outline. named: the tokens of ids."""
    size, shape = outline.vocabulary, outline.logits
    fields: dict[str, Any] = dict(outline.whole)
    for kind, several in outline.records.items():
        fields[kind] = tuple(_records(kind, several, source))
    fields["residual"] = {
        stack: _States(stack, count, source) for stack, count in outline.residual.items()
    }
    fields["summands"] = {
        stack: _arrays(source, names, "summands", stack)
        for stack, names in outline.summands.items()
    }
    made = FarTrace(
        **fields,
        written=_arrays(source, outline.written, "written"),
        angles=source.read(("angles",)) if outline.has_angles else None,
        prediction=None if shape is None else Logits(shape, partial(_rows, source, shape[0])),
        vocabulary=None if size is None else Vocabulary(size, named),
    )
    vars(made).update(source_=source, outline=outline)
    return made


class FarRecord(Elsewhere):
    """What a record on the cluster has beside its own fields."""

    source_: Source
    path: Path

    def ask(self, function: str, given: Mapping[str, Any]) -> Any:
        return self.source_.ask(function, given)

    def field(self, name: str) -> Any:
        """A field of the record, or its check."""
        return self.source_.read((*self.path, name))

    def check(self) -> float:
        return float(self.field("check"))


class FarAttention(FarRecord, Attention):
    @property
    def sizes(self) -> tuple[int, int, int]:
        told: tuple[int, int, int] = vars(self)["sizes"]
        return told


class FarNorm(FarRecord, NormRecord):
    pass


class FarFeedForward(FarRecord, FeedForwardRecord):
    pass


class FarExperts(FarRecord, ExpertsRecord):
    pass


_KINDS: Mapping[str, type[FarRecord]] = {
    "attention": FarAttention,
    "norms": FarNorm,
    "feed_forward": FarFeedForward,
    "experts": FarExperts,
}


class _Later:
    """A large field: it travels when it is first read, and is then kept. One that a record was made with
    stands before it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, record: FarRecord, _: type) -> Any:
        found = vars(record)[self._name] = record.field(self._name)
        return found


for _kind, _record in _KINDS.items():
    for _name in LARGE[_kind]:
        setattr(_record, _name, _Later(_name))


def _records(
    kind: str, several: Sequence[Mapping[str, Any]], source: Source
) -> Iterator[FarRecord]:
    for number, fields in enumerate(several):
        record = object.__new__(_KINDS[kind])
        vars(record).update(fields, source_=source, path=(kind, number))
        yield record


class _States(Sequence[Array]):
    """The states of a stack's residual stream."""

    def __init__(self, stack: str, count: int, source: Source) -> None:
        self._stack, self._count, self._source = stack, count, source

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, at: Any) -> Any:
        numbers = range(self._count)[at]
        if isinstance(numbers, range):
            return tuple(self._state(number) for number in numbers)
        return self._state(numbers)

    def _state(self, number: int) -> Array:
        state: Array = self._source.read(("residual", self._stack, number))
        return state


def _arrays(source: Source, names: Sequence[str], *above: str) -> DeferredArrays:
    return DeferredArrays({name: partial(source.read, (*above, name)) for name in names})


def _rows(source: Source, tokens: int, wanted: slice) -> Array:
    """(token, vocabulary): rows of logits, a few at a time."""
    first, end, _ = wanted.indices(tokens)
    parts = [source.read(("logits", at, min(at + ROWS, end))) for at in range(first, end, ROWS)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
