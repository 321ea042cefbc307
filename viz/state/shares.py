"""How much of the server's time each visitor's pages took, and how long the next one waits for that.

A visitor may use `AT_ONCE` seconds, and after that an equal share of the time of all who drew a page within
the last `PRESENT` seconds, though never less than `LEAST`. The first pages of all newcomers have one account
together. Whoever is alone never waits.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

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


class Shares:
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
