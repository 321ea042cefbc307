"""A queue for what only a few can use at once, and one lock for each key."""

import math
import threading
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import TypeVar
from weakref import WeakValueDictionary

SECONDS_BETWEEN_NEWS = 0.2
ROUND = 64  # turns for which a visitor who had one lets others go first
LEAST_OWN, OWN = 2, 4  # of a queue's places one visitor may have so many, or this part
SHORTER = 8  # times the work of a turn that is let by

K = TypeVar("K")


class QueueFullError(ValueError):
    """As many wait as may, or of one visitor as one may: `own`."""

    def __init__(self, waiting: int, *, own: bool = False) -> None:
        who = "you have {:,} texts waiting" if own else "{:,} others are waiting"
        super().__init__(
            f"The queue is full: {who.format(waiting)} for the model. Your sentence is kept. Try "
            "again in a minute."
        )
        self.own = own


class LeftError(Exception):
    """A ticket was taken out of the queue while its owner waited."""


def nothing() -> None:
    """A callback that does nothing."""


def first_to_go(owned: Mapping[K, Hashable]) -> K:
    """What makes room where a bound for all is reached: of the visitor who has the most, what was used
    longest ago. So nobody loses a thing to one who has more.

    Args:
        owned: whose each thing is, what was used longest ago first. None: nobody's, beside all others.
    """
    has = Counter(visitor for visitor in owned.values() if visitor is not None)
    return max(owned, key=lambda key: has[owned[key]] or 1)  # the first of those with the most


@dataclass(frozen=True, eq=False)
class Ticket:
    """One wait in the queue."""

    visitor: Hashable
    number: int  # in order of arrival
    arrived: int  # turns that the queue had given by then, or counts as having given
    work: float  # of the turn; inf: not known, so it is let by nowhere


class HeldTurn:
    """A turn that is held, and lets shorter ones by between its parts. One that was let by itself lets nobody
    by, so at most one turn in each place stands still. clock: seconds that only grow."""

    def __init__(self, queue: "FairQueue", ticket: Ticket, clock: Callable[[], float]) -> None:
        self._queue, self._ticket, self._clock = queue, ticket, clock
        self._began, self._lent = clock(), 0.0

    def let_by(self) -> float:
        """Waits for the turn of the next of those that are shorter, if one waits and they have had no more
        time than this turn itself; the seconds that it took."""
        before = self._clock()
        if before - self._began < 2 * self._lent or not self._queue.let_by(self._ticket):
            return 0.0
        took = self._clock() - before
        self._lent += took
        return took


class FairQueue:
    """A fair queue. Of all visitors who wait, the one whose last turn is longest ago is next, so a visitor
    with much to compute gets no more than one with little. A visitor without a turn among the last ROUND
    waits only for the present turn and for others like him. At most `longest` visitors stand before anybody,
    whatever each of them waits for, and one has a part of these places; None: there is no bound.
    clock: seconds that only grow.
    """

    def __init__(
        self,
        at_once: int,
        longest: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._free, self._clock = at_once, clock
        self._longest = longest
        self._waiting: list[Ticket] = []  # who is next stands first
        self._passing: set[Ticket] = set()  # for whom another turn stands still
        self._tickets = count()
        self._turns = 0  # given so far
        self._last: dict[Hashable, int] = {}  # visitor -> last turn, within the last ROUND turns
        self._moved = threading.Condition()

    @property
    def waiting(self) -> int:
        """How many wait now."""
        return len(self._waiting)

    @contextmanager
    def place(
        self,
        waiting: Callable[[int], object],
        wanted: Callable[[], object] = nothing,
        *,
        visitor: Hashable = None,
        however_long: bool = False,
        after: int = 0,
        work: float = math.inf,
    ) -> Iterator[HeldTurn]:
        """Joins the queue, waits for the visitor's turn and holds it: `join` and `turn` in one.

        Args:
            waiting, wanted: as in `turn`.
            visitor, however_long, after, work: as in `join`.
        """
        ticket = self.join(visitor, however_long=however_long, after=after, work=work)
        with self.turn(ticket, waiting, wanted) as turn:
            yield turn

    def join(
        self,
        visitor: Hashable = None,
        *,
        however_long: bool = False,
        after: int = 0,
        work: float = math.inf,
    ) -> Ticket:
        """Joins the queue; the ticket is for `turn`.

        Args:
            visitor: None: takes turns as one visitor with the others of None; the bound counts each alone.
            however_long: the bound does not count.
            after: it counts as if it came so many turns later.
            work: of the turn, in a unit of all turns' own; inf where it is not known.

        Raises QueueFullError where too many visitors stand before it, or the visitor has too many tickets.
        """
        with self._moved:
            ticket = Ticket(visitor, next(self._tickets), self._turns + after, work)
            before = bisect_right(self._waiting, self._due(ticket), key=self._due)
            if not however_long:
                self._check_bound(visitor, self._waiting[:before])
            self._waiting.insert(before, ticket)
            return ticket

    def _check_bound(self, visitor: Hashable, before: Sequence[Ticket]) -> None:
        if self._longest is None:
            return
        own = sum(one.visitor == visitor for one in self._waiting) if visitor is not None else 0
        others = {one if one.visitor is None else one.visitor for one in before} - {visitor}
        if len(others) >= self._longest:
            raise QueueFullError(len(others))
        if own >= max(LEAST_OWN, self._longest // OWN):
            raise QueueFullError(own, own=True)

    def place_of(self, ticket: Ticket) -> int:
        """Where a ticket stands: 1 is next; 0: it does not wait."""
        with self._moved:
            return self._waiting.index(ticket) + 1 if ticket in self._waiting else 0

    def leave(self, ticket: Ticket) -> None:
        """Takes a ticket out of the queue, if it still waits."""
        with self._moved:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
                self._passing.discard(ticket)
                self._moved.notify_all()

    def let_by(self, holder: Ticket) -> bool:
        """In a holder's turn: returns after the turn of the first who waits with at most 1/SHORTER of its
        work. False where none does, or where it was let by itself."""
        with self._moved:
            shorter = (one for one in self._waiting if one.work * SHORTER <= holder.work)
            ticket = next((one for one in shorter if one.work < math.inf), None)
            if ticket is None or holder in self._passing:
                return False
            self._passing.add(ticket)
            self._moved.notify_all()
            self._moved.wait_for(lambda: ticket not in self._passing)
            return True

    @contextmanager
    def turn(
        self, ticket: Ticket, waiting: Callable[[int], object], wanted: Callable[[], object]
    ) -> Iterator[HeldTurn]:
        """Waits for a ticket's turn and holds it.

        Args:
            waiting: is told the place (1 = next) when it changes.
            wanted: is called every 0.2 seconds; what it raises ends the wait.

        Raises LeftError where the ticket was taken out of the queue.
        """
        try:
            self._stand(ticket, waiting, wanted)
        except BaseException:
            self.leave(ticket)
            raise
        try:
            yield HeldTurn(self, ticket, self._clock)
        finally:
            with self._moved:
                if ticket in self._passing:
                    self._passing.remove(ticket)
                else:
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
                if place <= self._free or ticket in self._passing:
                    self._waiting.remove(ticket)
                    self._free -= ticket not in self._passing
                    self._note_turn(ticket.visitor)
                    return
                if place == told:
                    self._moved.wait(SECONDS_BETWEEN_NEWS)
            # Outside the lock, because both may draw on a page, or raise.
            if place == told:
                wanted()
            else:
                waiting(place)
                told = place

    def _due(self, ticket: Ticket) -> tuple[int, int]:
        """What tickets are sorted by: the turn at which they came, put off by ROUND after the visitor's last
        turn; then the order of arrival."""
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
        """Holds the key's lock. While somebody else holds it, `meanwhile` is called every 0.2 seconds."""
        with self._guard:
            lock = self._locks.setdefault(key, threading.RLock())
        while not lock.acquire(timeout=SECONDS_BETWEEN_NEWS):
            meanwhile()
        try:
            yield
        finally:
            lock.release()
