"""Arrays that lie elsewhere until they are first read: on the device of a pass, in another process, or in
weights from which they are computed again."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from model.trace.arrays import Array, holds_arrays
from model.trace.unproven import Unproven

LARGEST_COPY = 256 * 2**20  # bytes that leave a device at once; they need as many more there

Read = TypeVar("Read")
Kind = TypeVar("Kind", bound=type)


class Lazy(Generic[Read]):
    """An array, or several, made when they are first read. They are then kept, and what they came from is
    let go. To another process they travel as what they are.

    Args:
        make: makes them; the same at each call.
        shapes: of the arrays; () where they are not known before.
        nbytes: of the arrays, as they count for their trace.
        source: what they are made from, for whoever wants to use it there.
        keeps: False: they are made again at each reading.
        travels: True: to another process it travels unread, and is read there.
    """

    def __init__(
        self,
        make: Callable[[], Read],
        shapes: tuple[tuple[int, ...], ...] = (),
        nbytes: int = 0,
        *,
        source: Any = None,
        keeps: bool = True,
        travels: bool = False,
    ) -> None:
        self.shapes, self.nbytes, self.source = shapes, nbytes, source
        self.keeps, self.travels, self.is_read = keeps, travels, False
        self._make = make

    def once(self) -> Read:
        """What it stands for, which is not kept here where nobody has read it."""
        return self._make()

    def get(self) -> Read:
        """What it stands for. Threads that ask at the same time may each make it."""
        value = self._make()
        if self.keeps and not self.is_read:
            self._make, self.source, self.is_read = (lambda: value), None, True
        return value

    def __reduce__(self) -> Any:
        return (
            object.__reduce__(self)
            if self.travels and not self.is_read
            else (value_of, (self.get(),))
        )


def value_of(value: Any) -> Any:
    """What a lazy value stands for; anything else is what it is."""
    return value.get() if isinstance(value, Lazy) else value


class LazyField:
    """A field of a record that may be lazy: it is read with the field, and is then the field's value."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, record: Any, _: type) -> Any:
        if record is None:
            return self
        value = vars(record)[self._name]
        if isinstance(value, Lazy):
            value = vars(record)[self._name] = value.get()
        return value

    def __set__(self, record: Any, value: Any) -> None:
        vars(record)[self._name] = value


def with_lazy_fields(kind: Kind) -> Kind:
    """A class of read-only records whose arrays may be lazy. A pickle holds what they stand for, and gives
    read-only arrays again; a deep copy is the record itself, which nobody can change."""
    for one in fields(kind):
        if holds_arrays(one.type):
            setattr(kind, one.name, LazyField(one.name))
    methods = {"__deepcopy__": _itself, "__getstate__": _state, "__setstate__": _restored}
    for name, method in methods.items():
        setattr(kind, name, method)
    return kind


def _itself(record: object, memo: object) -> object:
    return record


def _state(record: object) -> dict[str, Any]:
    return {name: value_of(value) for name, value in vars(record).items()}


def _restored(record: object, state: dict[str, Any]) -> None:
    vars(record).update(state)
    for value in state.values():
        for array in _arrays_in(value):
            array.flags.writeable = False


def _arrays_in(value: object) -> Iterator[NDArray[Any]]:
    """The arrays of a field, and those in its tuples and mappings; not those of other records."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple | Mapping) and not isinstance(value, Unproven):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _arrays_in(one)


def arrays_of(record: Any) -> Iterator[NDArray[Any]]:
    """The arrays in the fields of a record, and in their tuples and mappings."""
    for one in fields(record):
        yield from _arrays_in(value_of(vars(record)[one.name]))


def shapes_of(record: object, name: str) -> tuple[tuple[int, ...], ...]:
    """The shapes of the arrays of a field, which are not read for it."""
    value = vars(record)[name]
    if isinstance(value, Lazy) and value.shapes:
        return value.shapes
    return tuple(one.shape for one in getattr(record, name))


def states_of(states: tuple[Any, ...]) -> Sequence[Array]:
    """States, some of which may be lazy."""
    return LazyStates(states) if any(isinstance(one, Lazy) for one in states) else states


def some_of(states: Sequence[Array], first: int, end: int) -> Sequence[Array]:
    """Some states, none of which is read for it."""
    if isinstance(states, LazyStates):
        return states_of(states.states[first:end])
    return states[first:end]


def named(arrays: Mapping[str, Any]) -> Mapping[str, Array]:
    """Arrays by name, some of which may be lazy."""
    return LazyArrays(arrays) if any(isinstance(one, Lazy) for one in arrays.values()) else arrays


@dataclass(frozen=True)
class LazyStates(Sequence[Array]):
    """States, each read when it is asked for."""

    states: tuple[Lazy[Array] | Array, ...]

    def __len__(self) -> int:
        return len(self.states)

    @overload
    def __getitem__(self, at: int) -> Array: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Array]: ...
    def __getitem__(self, at: int | slice) -> Array | Sequence[Array]:
        wanted = self.states[at]
        return tuple(map(value_of, wanted)) if isinstance(wanted, tuple) else value_of(wanted)

    def __reduce__(self) -> tuple[Any, ...]:
        return states_of, (self.states,)


@dataclass(frozen=True)
class LazyArrays(Mapping[str, Array]):
    """Arrays by name, each read when it is asked for."""

    arrays: Mapping[str, Lazy[Array] | Array]

    def __getitem__(self, name: str) -> Array:
        array: Array = value_of(self.arrays[name])
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    def __reduce__(self) -> tuple[Any, ...]:
        return named, (dict(self.arrays),)


def memory_of(value: object) -> Iterator[tuple[object, int]]:
    """The pieces of memory of arrays, in a record or in what holds some: what tells a piece from others, and
    its bytes, those of lazy arrays among them. None is read for it."""
    if isinstance(value, np.ndarray):
        yield value.__array_interface__["data"][0], value.nbytes
    elif isinstance(value, Lazy):
        yield from memory_of(value.get()) if value.is_read else [(value, value.nbytes)]
    elif isinstance(value, LazyStates | LazyArrays):
        yield from memory_of(tuple(vars(value).values()))
    elif isinstance(value, tuple | Mapping):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from memory_of(one)
    elif hasattr(value, "__dataclass_fields__"):
        yield from memory_of(tuple(vars(value)[one.name] for one in fields(value)))  # type: ignore[arg-type]
