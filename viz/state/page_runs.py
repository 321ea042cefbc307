"""Runs of pages take turns, so that a visitor who clicks without a pause does not delay the others.

Python runs one thread at a time: pages drawn at the same time all come late. So they are drawn one after the
other. The next turn goes to the visitor whose last turn is longest ago; newcomers, and those who have used
much, come after the others. A page that takes long steps aside between two of its elements, and goes on in
its next turn. Whoever used more than a fair share of the time waits a moment first.
"""

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

from model.system.fair_queue import ROUND, FairQueue, Ticket, is_waited_for, nothing
from viz.state.shares import Shares

LONGEST_WAIT = 3.0  # seconds that one waits for one's share
LONG = 0.15  # seconds without an element: the page loads a model or waits for a pass, and the others go on
LATER = (
    2 * ROUND
)  # turns for which newcomers, and those who have used much, let the others go first
SLICE = 0.01  # seconds of one core, after which a page lets others go first


class Turn:
    """A visitor's turn, which can be given back and taken again. long: seconds after which it ends by itself.
    want: is told of one more who wants a turn or has it, and of one less."""

    def __init__(
        self, line: FairQueue, visitor: Hashable, long: float, want: Callable[[int], object]
    ) -> None:
        self._line, self.visitor, self._long, self._want = line, visitor, long, want
        self._began = 0.0  # on the clock of this thread's computing
        self._is_over: Callable[[], bool]
        self._give: Callable[[], None]
        self._clock: threading.Timer

    def take(self, after: int) -> None:
        """Waits for the turn. after: it counts as if it came so many turns later."""
        self._want(1)
        self._wait(self._line.join(self.visitor, however_long=True, after=after))

    def pause(self, after: int) -> None:
        """Gives the turn back and takes the next one, unless that would be the very next of all."""
        ticket = self._line.join(self.visitor, however_long=True, after=after)
        if self._line.place_of(ticket) == 1 and not self._is_over():
            self._line.leave(ticket)
            return
        self._want(1)
        self.give()
        self._wait(ticket)

    def give(self) -> None:
        """Gives the turn back, if it is not over."""
        self._clock.cancel()
        self._give()

    @property
    def should_pause(self) -> bool:
        """Whether it is over, or has lasted long enough while others wait."""
        if self._is_over():
            return True
        return self._line.waiting > 0 and time.thread_time() - self._began > SLICE

    def _wait(self, ticket: Ticket) -> None:
        turn = self._line.turn(ticket, lambda place: None, nothing)
        try:
            turn.__enter__()
        except BaseException:
            self._want(-1)
            raise
        ended = threading.Lock()

        def give() -> None:
            if ended.acquire(blocking=False):  # once: by its holder or by the clock
                turn.__exit__(None, None, None)
                self._want(-1)

        self._is_over, self._give = ended.locked, give
        self._clock = threading.Timer(self._long, give)
        self._clock.daemon = True
        self._clock.start()
        self._began = time.thread_time()


class _Thread(threading.local):
    """The turn of the page that this thread draws."""

    turn: Turn | None = None


class PageRuns:
    """The turns of all visitors, and what goes on beside them and lets them go first."""

    def __init__(self, long: float = LONG) -> None:
        self._line, self._long, self._shares = FairQueue(at_once=1), long, Shares()
        self._thread = _Thread()
        self._wanted = 0  # runs that wait for their turn or have it
        self._changed = threading.Condition()

    @contextmanager
    def turn(self, visitor: Hashable) -> Iterator[None]:
        """Holds the visitor's turn, for at most `long` seconds at once; the body may go on after that."""
        self._wait_for_share(visitor)
        turn = Turn(self._line, visitor, self._long, self._want)
        turn.take(self._after(visitor))
        self._thread.turn = turn
        before = time.thread_time()
        try:
            yield
        finally:
            self._thread.turn = None
            turn.give()
            self._shares.charge(visitor, time.thread_time() - before)

    def let_others_go_first(self) -> None:
        """Between two elements of a page: where its turn is over, or has lasted a while and others wait, it
        goes on in its next one. A thread whose locks others wait for goes on at once."""
        turn = self._thread.turn
        if turn is not None and turn.should_pause and not is_waited_for():
            turn.pause(self._after(turn.visitor))

    def let_pass(self) -> None:
        """Waits until no page waits for its turn or has it, for at most `long` seconds: for work in the
        background before each of its steps."""
        with self._changed:
            self._changed.wait_for(lambda: self._wanted == 0, timeout=self._long)

    def _after(self, visitor: Hashable) -> int:
        return 0 if self._shares.knows(visitor) and not self._shares.used_much(visitor) else LATER

    def _wait_for_share(self, visitor: Hashable) -> None:
        until = time.monotonic() + LONGEST_WAIT
        while seconds := self._shares.take(visitor, waited=time.monotonic() >= until):
            time.sleep(min(seconds, max(until - time.monotonic(), 0.0)))

    def _want(self, more: int) -> None:
        with self._changed:
            self._wanted += more
            self._changed.notify_all()


page_runs = PageRuns()
