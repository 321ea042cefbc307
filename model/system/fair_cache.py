"""A cache for all visitors, in which nobody's things make room for those of one who has more."""

from collections.abc import Callable, Hashable, Iterator
from typing import TypeVar

from cachetools import Cache

from model.system.fair_queue import first_to_go, nothing

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class FairCache(Cache[K, V]):
    """Things within a bound of their sizes. What goes is of the visitor who has the most of them, and there
    what was used longest ago.

    visitor: for whom a thing is kept now. clock: seconds that only grow.
    """

    def __init__(
        self,
        most: float,
        size: Callable[[V], float],
        *,
        visitor: Callable[[], Hashable] = nothing,
        clock: Callable[[], float] = lambda: 0.0,
    ) -> None:
        super().__init__(most, getsizeof=size)
        self._visitor, self._clock = visitor, clock
        self._owners: dict[K, Hashable] = {}
        self._used: dict[K, float] = {}  # when; the longest ago first

    def __getitem__(self, key: K) -> V:
        value = super().__getitem__(key)
        self._use(key)
        return value

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self._owners[key] = self._visitor()
        self._use(key)

    def __delitem__(self, key: K) -> None:
        super().__delitem__(key)
        del self._owners[key], self._used[key]

    def popitem(self) -> tuple[K, V]:
        """Takes out what goes first."""
        key = first_to_go({key: self._owners[key] for key in self._used})
        value = super().__getitem__(key)
        del self[key]
        return key, value

    def kept(self) -> Iterator[tuple[K, V]]:
        """All that is kept. This is no use of it: what goes first stays the same."""
        return ((key, Cache.__getitem__(self, key)) for key in self)

    def unused(self, since: float) -> list[K]:
        """What was not used since a time of the clock."""
        return [key for key, used in self._used.items() if used < since]

    def _use(self, key: K) -> None:
        self._used.pop(key, None)
        self._used[key] = self._clock()
