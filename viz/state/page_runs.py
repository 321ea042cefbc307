"""Runs of pages take turns, so that a visitor who clicks without a pause does not delay the others.

Python runs one thread at a time: pages drawn at the same time all come late. So they are drawn one after the
other. The next turn goes to the visitor whose last turn is longest ago.
"""

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from model.system.pass_queue import PassQueue

LONG = 0.25  # seconds: a longer run loads a model or waits for a pass, and the others go on


class PageRuns:
    """The turns of all visitors, and what goes on beside them and lets them go first."""

    def __init__(self, long: float = LONG) -> None:
        self._line, self._long = PassQueue(at_once=1), long
        self._wanted = 0  # runs that wait for their turn or have it
        self._changed = threading.Condition()

    @contextmanager
    def turn(self, visitor: Hashable) -> Iterator[None]:
        """Holds the visitor's turn, for at most `long` seconds; the body may go on after that."""
        self._want(1)
        turn = self._line.place(lambda place: None, visitor=visitor, however_long=True)
        try:
            turn.__enter__()
        except BaseException:
            self._want(-1)
            raise
        ended = threading.Lock()

        def end() -> None:
            if ended.acquire(blocking=False):  # once: by the body or by the clock
                turn.__exit__(None, None, None)
                self._want(-1)

        clock = threading.Timer(self._long, end)
        clock.daemon = True
        clock.start()
        try:
            yield
        finally:
            clock.cancel()
            end()

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
