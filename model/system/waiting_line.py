"""A line in front of something that few can use at once, and locks of keys."""

import threading
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from weakref import WeakValueDictionary

SECONDS_BETWEEN_NEWS = 0.2
ROUND = 64  # turns for which a visitor who had one lets those who had none go first


class LineFullError(ValueError):
    """So many wait already that one more would wait in vain."""

    def __init__(self, waiting: int) -> None:
        super().__init__(
            f"{waiting:,} others are waiting for the model, as many as fit in the line. Your "
            "sentence is kept: try again in a minute."
        )


class LeftError(Exception):
    """A ticket was taken out of the line while somebody waited with it."""


def nothing() -> None:
    """A callback that does nothing."""


@dataclass(frozen=True, eq=False)
class Ticket:
    """One wait in the line."""

    visitor: Hashable
    number: int  # in order of arrival
    arrived: int  # turns that the line had given by then


class Line:
    """Visitors take turns: of all who wait, the one whose last turn is longest ago is next. So a
    visitor with much to do gets no more than one with little, and who had no turn in the last ROUND
    waits for the turn under way and for others like that. At most `longest` stand before anybody;
    None: as many as come.
    """

    def __init__(self, at_once: int, longest: int | None = None) -> None:
        self._free = at_once
        self._longest = longest
        self._waiting: list[Ticket] = []  # who is next stands first
        self._tickets = count()
        self._turns = 0  # given so far
        self._last: dict[Hashable, int] = {}  # visitor -> turn, for those of the last ROUND turns
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
        visitor: Hashable = None,
        however_long: bool = False,
    ) -> Iterator[None]:
        """Waits for a turn of the visitor's and holds it. As `join` and `turn`."""
        with self.turn(self.join(visitor, however_long=however_long), waiting, wanted):
            yield

    def join(self, visitor: Hashable = None, *, however_long: bool = False) -> Ticket:
        """A place in the line, to be taken to `turn`. Raises LineFullError where too many stand before it,
        unless it may be `however_long`."""
        with self._moved:
            ticket = Ticket(visitor, next(self._tickets), self._turns)
            before = bisect_right(self._waiting, self._due(ticket), key=self._due)
            if self._longest is not None and before >= self._longest and not however_long:
                raise LineFullError(before)
            self._waiting.insert(before, ticket)
            return ticket

    def place_of(self, ticket: Ticket) -> int:
        """Where a ticket stands: 1 is next, 0 is not in the line."""
        with self._moved:
            return self._waiting.index(ticket) + 1 if ticket in self._waiting else 0

    def leave(self, ticket: Ticket) -> None:
        """Takes a ticket out of the line, if it still stands there."""
        with self._moved:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
                self._moved.notify_all()

    @contextmanager
    def turn(
        self, ticket: Ticket, waiting: Callable[[int], object], wanted: Callable[[], object]
    ) -> Iterator[None]:
        """Waits for a ticket's turn and holds it. `waiting` hears the place in line (1 = next) when it
        changes; `wanted` is called now and then, and whatever it raises leaves the line.

        Raises LeftError where the ticket was taken out of the line.
        """
        try:
            self._stand(ticket, waiting, wanted)
        except BaseException:
            self.leave(ticket)
            raise
        try:
            yield
        finally:
            with self._moved:
                self._free += 1
                self._moved.notify_all()

    def _stand(
        self, ticket: Ticket, waiting: Callable[[int], object], wanted: Callable[[], object]
    ) -> None:
        told = 0
        while True:
            with self._moved:
                if ticket not in self._waiting:
                    raise LeftError
                place = self._waiting.index(ticket) + 1
                if place <= self._free:
                    self._waiting.remove(ticket)
                    self._free -= 1
                    self._note_turn(ticket.visitor)
                    return
                if place == told:
                    self._moved.wait(SECONDS_BETWEEN_NEWS)
            # Outside the lock: both may draw on a page, or be ended with it.
            if place == told:
                wanted()
            else:
                waiting(place)
                told = place

    def _due(self, ticket: Ticket) -> tuple[int, int]:
        """The turn at which a ticket counts as come, for a visitor's last turn puts off the next; of those
        that are equal, the earlier one goes first."""
        last = self._last.get(ticket.visitor)
        turn = ticket.arrived if last is None else max(ticket.arrived, last + ROUND)
        return turn, ticket.number

    def _note_turn(self, visitor: Hashable) -> None:
        self._last.pop(visitor, None)
        self._last[visitor] = self._turns  # the latest one last
        self._turns += 1
        first = next(iter(self._last))
        if self._last[first] + ROUND <= self._turns:
            del self._last[first]
        self._waiting.sort(key=self._due)


class KeyLocks:
    """One lock for a key, so that two who ask for the same thing do the work once."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[object, threading.RLock] = WeakValueDictionary()
        self._guard = threading.Lock()

    @contextmanager
    def held(self, key: object, meanwhile: Callable[[], object] = nothing) -> Iterator[None]:
        """Holds the key's lock; calls `meanwhile` now and then while somebody else holds it. The lock is
        forgotten with its last user."""
        with self._guard:
            lock = self._locks.setdefault(key, threading.RLock())
        while not lock.acquire(timeout=SECONDS_BETWEEN_NEWS):
            meanwhile()
        try:
            yield
        finally:
            lock.release()
