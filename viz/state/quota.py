"""How much of the server's time each visitor's pages took, and how long the next one waits for that.

A visitor may use `AT_ONCE` seconds, and after that an equal share of the time of all who drew a page within
the last `PRESENT` seconds, though never less than `LEAST`. The first pages of all newcomers have one account
together. Whoever is alone never waits.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from model.system.fair_queue import ROUND, FairQueue, nothing

AT_ONCE, AT_ONCE_NEWCOMERS = 1.0, 3.0  # seconds of one core
LEAST, SHARE_NEWCOMERS = 0.03, 0.05  # of the time
USUAL = 0.05  # seconds of a page that has begun, until it is known how long it took
PRESENT = 10.0  # seconds
KEPT = 10_000  # visitors that are remembered


@dataclass(frozen=True)
class Account:
    """Seconds that were used and not regained, by a time of the clock."""

    used: float
    then: float


class TimeQuota:
    """The accounts of all visitors. clock: seconds that only grow."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._of: OrderedDict[Hashable, Account] = OrderedDict()  # who drew last stands last
        self._newcomers = Account(0.0, clock())
        self._changing = threading.RLock()

    def knows(self, visitor: Hashable) -> bool:
        """Whether a page was drawn for this visitor before."""
        return visitor in self._of

    def wait(self, visitor: Hashable) -> float:
        """Seconds until this visitor's next page may be drawn."""
        with self._changing:
            share = self._share(visitor)
            at_once = AT_ONCE if self.knows(visitor) else AT_ONCE_NEWCOMERS
            return 0.0 if share == 1.0 else max(self._used(visitor, share) - at_once, 0.0) / share

    def take(self, visitor: Hashable, *, waited: bool) -> float:
        """The same; at 0, or where the visitor has waited long enough, the page begins and is charged as a
        usual one. Else all who wait together would begin together."""
        with self._changing:
            wait = 0.0 if waited else self.wait(visitor)
            if wait == 0:
                self._add(visitor, USUAL)
            return wait

    def charge(self, visitor: Hashable, seconds: float) -> None:
        """A page of this visitor that had begun took so many seconds of one core."""
        with self._changing:
            self._add(visitor, seconds - USUAL)
            self._of.setdefault(visitor, Account(0.0, self._clock()))
            self._of.move_to_end(visitor)
            if len(self._of) > KEPT:
                self._of.popitem(last=False)

    def _add(self, visitor: Hashable, seconds: float) -> None:
        account = Account(self._used(visitor, self._share(visitor)) + seconds, self._clock())
        if self.knows(visitor):
            self._of[visitor] = account
        else:
            self._newcomers = account

    def _used(self, visitor: Hashable, share: float) -> float:
        account = self._of.get(visitor, self._newcomers)
        return max(account.used - share * (self._clock() - account.then), 0.0)

    def _share(self, visitor: Hashable) -> float:
        """The part of the time that a visitor has."""
        others = self._others(visitor)
        if not others:
            return 1.0
        return max(1 / (1 + others), LEAST) if self.knows(visitor) else SHARE_NEWCOMERS

    def _others(self, visitor: Hashable) -> int:
        """How many others are present."""
        since, others = self._clock() - PRESENT, 0
        for other, account in reversed(self._of.items()):
            if account.then < since:
                break
            others += other != visitor
        return others


# Runs of pages take turns, so that a visitor who clicks without a pause does not delay the others.
# Python runs one thread at a time: pages drawn at the same time all come late. So they are drawn one after
# the other. The next turn goes to the visitor whose last turn is longest ago; newcomers come after those who
# are there. Whoever used more than a fair share of the time waits a moment first.

LONGEST_WAIT = 3.0  # seconds that one waits for one's share
# Seconds, at most: until the first page is asked for, until it has run, and until its browser asks for what
# draws the picture, if it does not have that from before; then what the drawing takes.
SOON, PATIENCE, FETCHING, DRAWING = 0.3, 5.0, 1.5, 1.0
LONG = 0.15  # seconds: a longer run loads a model or waits for a pass, and the others go on


class _Own(threading.local):
    """What ends the turn of this thread, if it has one."""

    end: Callable[[], None] = staticmethod(nothing)


class PageRuns:
    """The turns of all visitors, and what goes on beside them and lets them go first."""

    def __init__(self, long: float = LONG) -> None:
        self._line, self._long, self._quota = FairQueue(at_once=1), long, TimeQuota()
        self._wanted = 0  # runs that wait for their turn or have it
        # Of the first page: it is asked for, it has run, and its picture is about to be drawn.
        self._asked, self._drawn, self._drawing = (threading.Event() for _ in range(3))
        self._changed = threading.Condition()
        self._own = _Own()

    @contextmanager
    def turn(self, visitor: Hashable) -> Iterator[None]:
        """Holds the visitor's turn, for at most `long` seconds; the body may go on after that."""
        until = time.monotonic() + LONGEST_WAIT
        while seconds := self._quota.take(visitor, waited=time.monotonic() >= until):
            time.sleep(min(seconds, max(until - time.monotonic(), 0.0)))
        self._want(1)
        after = 0 if self._quota.knows(visitor) else ROUND
        turn = self._line.place(lambda place: None, visitor=visitor, however_long=True, after=after)
        try:
            turn.__enter__()
        except BaseException:
            self._want(-1)
            raise
        ended = threading.Lock()

        def end() -> None:
            if ended.acquire(blocking=False):  # once: by the body, by `give_up` or by the clock
                turn.__exit__(None, None, None)
                self._want(-1)

        clock = threading.Timer(self._long, end)
        clock.daemon = True
        clock.start()
        self._own.end = end
        before = time.thread_time()
        try:
            yield
        finally:
            clock.cancel()
            end()
            self._drawn.set()
            self._quota.charge(visitor, time.thread_time() - before)

    def give_up(self) -> None:
        """The run of this thread goes on without its turn: it waits for something, and others are drawn
        meanwhile."""
        self._own.end()
        self._drawn.set()

    def note_asked(self) -> None:
        """A browser has asked for a page, whose run will follow."""
        self._asked.set()

    def note_drawing(self) -> None:
        """A browser has asked for the script that draws pictures."""
        self._drawing.set()

    def let_first_pass(self) -> None:
        """Waits until the first page is drawn, where one is asked for by now: for what would take the time of
        its run."""
        if self._asked.wait(SOON):
            self._drawn.wait(PATIENCE)
            self.let_draw()

    def let_draw(self, meanwhile: Callable[[], object] = nothing) -> None:
        """Waits until a browser of this server has had the time to draw its first picture. meanwhile: is
        called every 0.1 seconds."""
        if not self._asked.is_set():
            return
        until = time.monotonic() + FETCHING
        while not self._drawing.wait(0.1) and time.monotonic() < until:
            meanwhile()
        until = time.monotonic() + DRAWING
        while time.monotonic() < until:
            meanwhile()
            time.sleep(0.1)

    def let_pass(self) -> None:
        """Waits until no page waits for its turn or has it, for at most `long` seconds: for work in the
        background before each of its steps."""
        with self._changed:
            self._changed.wait_for(lambda: self._wanted == 0, timeout=self._long)

    def _want(self, more: int) -> None:
        with self._changed:
            self._wanted += more
            self._changed.notify_all()


page_runs = PageRuns()
