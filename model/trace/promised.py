"""Arrays that lie elsewhere until they are first read: on the device of a pass, or in another process."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence, ValuesView
from dataclasses import dataclass, fields
from threading import Lock
from typing import Any, Generic, TypeVar, overload
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from model.trace.arrays import Array, holds_arrays
from model.trace.unproven import UnprovenRecords, UnprovenStates

Read = TypeVar("Read")
Kind = TypeVar("Kind", bound=type)


class Promise(Generic[Read]):
    """An array, or several, that travel when they are first read. They are then kept, and what they came from
    is let go.

    Args:
        bring: makes them; the same at each call.
        shapes: of the arrays; () where they are not known before.
        nbytes: of the arrays.
    """

    def __init__(
        self,
        bring: Callable[[], Read],
        shapes: tuple[tuple[int, ...], ...] = (),
        nbytes: int = 0,
    ) -> None:
        self.shapes, self.nbytes = shapes, nbytes
        self.is_read = False
        self._bring = bring

    def once(self) -> Read:
        """What was promised, which is not kept here where nobody has read it."""
        return self._bring()

    def read(self) -> Read:
        """What was promised. Threads that ask at the same time may each bring it."""
        read = self._bring()
        if not self.is_read:
            self._bring, self.is_read = (lambda: read), True
        return read


def fulfilled(value: Any) -> Any:
    """What a promise brings; anything else is what it is."""
    return value.read() if isinstance(value, Promise) else value


class Room:
    """Promises of the latest passes, within a bound: beyond it the oldest are read, if somebody still holds
    them, and let go of what they came from."""

    def __init__(self) -> None:
        self._passes: deque[tuple[int, tuple[ref[Promise[Any]], ...]]] = deque()  # with their bytes
        self._lock = Lock()

    def add(self, promises: Sequence[Promise[Any]], most: int) -> None:
        """The promises of one more pass. most: bytes of all."""
        if not promises:
            return
        oldest: list[ref[Promise[Any]]] = []
        with self._lock:
            self._passes.append((sum(one.nbytes for one in promises), tuple(map(ref, promises))))
            over = sum(nbytes for nbytes, _ in self._passes) - most
            while over > 0 and self._passes:
                nbytes, gone = self._passes.popleft()
                over -= nbytes
                oldest += gone
        for held in oldest:
            if (promise := held()) is not None:
                promise.read()


class PromisedField:
    """A field of a record that may be a promise: it is read with the field, and is then the field's value."""

    def __set_name__(self, kind: type, name: str) -> None:
        self._name = name

    def __get__(self, record: Any, _: type) -> Any:
        if record is None:
            return self
        value = vars(record)[self._name]
        if isinstance(value, Promise):
            value = vars(record)[self._name] = value.read()
        return value

    def __set__(self, record: Any, value: Any) -> None:
        vars(record)[self._name] = value


def promising(kind: Kind) -> Kind:
    """A class of read-only records whose arrays may be promised. A pickle holds what was promised, and gives
    read-only arrays again; a deep copy is the record itself, which nobody can change."""
    for one in fields(kind):
        if holds_arrays(one.type):
            setattr(kind, one.name, promise := PromisedField())
            promise.__set_name__(kind, one.name)
    methods = {"__deepcopy__": _itself, "__getstate__": _state, "__setstate__": _restored}
    for name, method in methods.items():
        setattr(kind, name, method)
    return kind


def _itself(record: object, memo: object) -> object:
    return record


def _state(record: object) -> dict[str, Any]:
    return {name: fulfilled(value) for name, value in vars(record).items()}


def _restored(record: object, state: dict[str, Any]) -> None:
    vars(record).update(state)
    for value in state.values():
        if not isinstance(value, UnprovenRecords | UnprovenStates):  # those refuse to be read
            for array in _arrays_in(value):
                array.flags.writeable = False


def _arrays_in(value: object) -> Iterator[NDArray[Any]]:
    """The arrays of a field, and those in its tuples and mappings; not those of other records."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple | Mapping):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _arrays_in(one)


def shapes_of(record: object, name: str) -> tuple[tuple[int, ...], ...]:
    """The shapes of the arrays of a field, which are not read for it."""
    value = vars(record)[name]
    if isinstance(value, Promise) and value.shapes:
        return value.shapes
    return tuple(one.shape for one in getattr(record, name))


@dataclass(frozen=True)
class PromisedStates(Sequence[Array]):
    """States, each read when it is asked for."""

    promised: tuple[Promise[Array], ...]

    def __len__(self) -> int:
        return len(self.promised)

    @overload
    def __getitem__(self, at: int) -> Array: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Array]: ...
    def __getitem__(self, at: int | slice) -> Array | Sequence[Array]:
        wanted = self.promised[at]
        return tuple(one.read() for one in wanted) if isinstance(wanted, tuple) else wanted.read()

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)


@dataclass(frozen=True)
class PromisedArrays(Mapping[str, Array]):
    """Arrays by name, each read when it is asked for."""

    promised: Mapping[str, Promise[Array]]

    def __getitem__(self, name: str) -> Array:
        return self.promised[name].read()

    def __iter__(self) -> Iterator[str]:
        return iter(self.promised)

    def __len__(self) -> int:
        return len(self.promised)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


def arrays_of(record: Any) -> Iterator[NDArray[Any]]:
    """The arrays in the fields of a record, and in their tuples and mappings."""
    for value in (vars(record)[one.name] for one in fields(record)):
        read = value.read() if isinstance(value, Promise) else value
        several = read.values() if isinstance(read, Mapping) else read
        members = several if isinstance(several, tuple | ValuesView) else (several,)
        yield from (one for one in members if isinstance(one, np.ndarray))


def memory_of(value: object) -> Iterator[tuple[object, int]]:
    """The pieces of memory of arrays, in a record or in what holds some: what tells a piece from others, and
    its bytes, those of promised arrays among them. None is read for it."""
    if isinstance(value, np.ndarray):
        yield value.__array_interface__["data"][0], value.nbytes
    elif isinstance(value, Promise):
        yield from memory_of(value.read()) if value.is_read else [(value, value.nbytes)]
    elif isinstance(value, PromisedStates | PromisedArrays):
        yield from memory_of(value.promised)
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from memory_of(one)
    elif isinstance(value, tuple):
        for one in value:
            yield from memory_of(one)
    elif hasattr(value, "__dataclass_fields__"):
        yield from memory_of(tuple(vars(value)[one.name] for one in fields(value)))  # type: ignore[arg-type]
