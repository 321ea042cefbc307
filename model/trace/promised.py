"""Arrays that lie elsewhere until they are first read: on the device of a pass, or in another process."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from threading import Lock
from typing import Any, Generic, TypeVar
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from model.trace.arrays import Array, holds_arrays

Read = TypeVar("Read")
Kind = TypeVar("Kind")
Memory = tuple[object, int]  # what tells a piece of memory from others, and its bytes


class Promise(Generic[Read]):
    """An array, or several, that `read` brings. It is brought once; then what it came from is let go.

    Args:
        bring: makes it.
        shapes: of the arrays, known before; () where they are not.
        nbytes: of the arrays.
    """

    def __init__(
        self,
        bring: Callable[[], Read],
        shapes: tuple[tuple[int, ...], ...] = (),
        nbytes: int = 0,
    ) -> None:
        self.shapes, self.nbytes = shapes, nbytes
        self._bring: Callable[[], Read] | None = bring
        self._read: list[Read] = []

    def read(self) -> Read:
        """What was promised. Two threads that ask at once may bring it twice."""
        bring = self._bring
        if not self._read and bring is not None:
            self._read.append(bring())
        self._bring = None
        return self._read[0]

    @property
    def is_read(self) -> bool:
        return bool(self._read)

    def __reduce__(self) -> tuple[Any, ...]:
        """It travels as what it promises."""
        return _itself, (self.read(),)


def _itself(value: Read) -> Read:
    return value


def fulfilled(value: Any) -> Any:
    """What a promise brings; anything else is what it is."""
    return value.read() if isinstance(value, Promise) else value
