"""Runs of pages take turns, so that a visitor who clicks without a pause does not delay the others.

Python runs one thread at a time: pages drawn at the same time all come late. So they are drawn one after the
other. The next turn goes to the visitor whose last turn is longest ago; newcomers come after those who are
there. Whoever used more than a fair share of the time waits a moment first.
"""

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

from model.system.fair_queue import ROUND, FairQueue, nothing
from viz.state.shares import Shares

LONGEST_WAIT = 3.0  # seconds that one waits for one's share
LONG = 0.15  # seconds: a longer run loads a model or waits for a pass, and the others go on


class _Own(threading.local):
    """What ends the turn of this thread, if it has one."""

    end: Callable[[], None] = staticmethod(nothing)


class PageRuns:
    """The turns of all visitors, and what goes on beside them and lets them go first."""

    def __init__(self, long: float = LONG) -> None:
        self._line, self._long, self._shares = FairQueue(at_once=1), long, Shares()
        self._wanted = 0  # runs that wait for their turn or have it
        self._changed = threading.Condition()
        self._own = _Own()

    @contextmanager
    def turn(self, visitor: Hashable) -> Iterator[None]:
        """Holds the visitor's turn, for at most `long` seconds; the body may go on after that."""
        self._wait_for_share(visitor)
        self._want(1)
        after = 0 if self._shares.knows(visitor) else ROUND
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
            self._shares.charge(visitor, time.thread_time() - before)

    def give_up(self) -> None:
        """The run of this thread goes on without its turn: it waits for something, and others are drawn
        meanwhile."""
        self._own.end()

    def let_pass(self) -> None:
        """Waits until no page waits for its turn or has it, for at most `long` seconds: for work in the
        background before each of its steps."""
        with self._changed:
            self._changed.wait_for(lambda: self._wanted == 0, timeout=self._long)

    def _wait_for_share(self, visitor: Hashable) -> None:
        until = time.monotonic() + LONGEST_WAIT
        while seconds := self._shares.take(visitor, waited=time.monotonic() >= until):
            time.sleep(min(seconds, max(until - time.monotonic(), 0.0)))

    def _want(self, more: int) -> None:
        with self._changed:
            self._wanted += more
            self._changed.notify_all()


page_runs = PageRuns()
