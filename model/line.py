"""A line in front of something that few can use at once, and locks of keys."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SECONDS_BETWEEN_NEWS = 0.2


class LineFullError(ValueError):
    """So many wait already that one more would wait in vain."""

    def __init__(self, waiting: int) -> None:
        super().__init__(
            f"{waiting:,} others are waiting for the model, as many as fit in the line. Your "
            "sentence is kept: try again in a minute."
        )


def nothing() -> None:
    """What a wait without conditions asks now and then."""


class Line:
    """First come, first served. At most `longest` wait; None: as many as come."""

    def __init__(self, at_once: int, longest: int | None = None) -> None:
        self._free = at_once
        self._longest = longest
        self._waiting: list[object] = []
        self._moved = threading.Condition()

    @property
    def waiting(self) -> int:
        """How many stand in the line now."""
        return len(self._waiting)

    @contextmanager
    def place(
        self,
        waiting: Callable[[int], object],
        wanted: Callable[[], object] = nothing,
        *,
        however_long: bool = False,
    ) -> Iterator[None]:
        """Waits for a turn. `waiting` hears the place in line (1 = next) when it changes; `wanted`
        is called now and then, and whatever it raises leaves the line.

        Raises LineFullError where too many wait, unless it may be `however_long`.
        """
        ticket = object()
        with self._moved:
            full = self._longest is not None and len(self._waiting) >= self._longest
            if full and not however_long:
                raise LineFullError(len(self._waiting))
            self._waiting.append(ticket)
        try:
            self._stand(ticket, waiting, wanted)
        except BaseException:
            with self._moved:
                if ticket in self._waiting:
                    self._waiting.remove(ticket)
                    self._moved.notify_all()
            raise
        try:
            yield
        finally:
            with self._moved:
                self._free += 1
                self._moved.notify_all()

    def _stand(
        self, ticket: object, waiting: Callable[[int], object], wanted: Callable[[], object]
    ) -> None:
        told = 0
        while True:
            with self._moved:
                place = self._waiting.index(ticket) + 1
                if place <= self._free:
                    self._waiting.remove(ticket)
                    self._free -= 1
                    return
                if place == told:
                    self._moved.wait(SECONDS_BETWEEN_NEWS)
            # Outside the lock: both may draw on a page, or be ended with it.
            if place == told:
                wanted()
            else:
                waiting(place)
                told = place


class KeyLocks:
    """One lock a key, so that two who ask for the same thing do the work once."""

    def __init__(self) -> None:
        self._locks: dict[object, tuple[threading.RLock, int]] = {}
        self._guard = threading.Lock()

    @contextmanager
    def held(self, key: object, meanwhile: Callable[[], object] = nothing) -> Iterator[None]:
        """Holds the key's lock; calls `meanwhile` now and then while somebody else holds it."""
        with self._guard:
            lock, users = self._locks.get(key, (threading.RLock(), 0))
            self._locks[key] = (lock, users + 1)
        try:
            while not lock.acquire(timeout=SECONDS_BETWEEN_NEWS):
                meanwhile()
            try:
                yield
            finally:
                lock.release()
        finally:
            with self._guard:
                lock, users = self._locks[key]
                if users == 1:
                    del self._locks[key]
                else:
                    self._locks[key] = (lock, users - 1)
