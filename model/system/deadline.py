"""Ends a pass early: when its visitor has left, or when it takes too long. A long pass lets shorter ones by.

The limits belong to the current context, as the recorder does, so each thread has its own. They are checked
between sub-layers. A pass that is ended leaves nothing behind.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

SECONDS_BETWEEN_LOOKS = 0.02


class PassTooLongError(ValueError):
    """A pass took longer than the server's owner allows."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"This was stopped because it took longer than {seconds:g} seconds. Shorten the text, "
            "or choose a smaller model."
        )


@dataclass
class _Limits:
    began: float
    seconds: float
    wanted: Callable[[], object]
    let_by: Callable[[], float]
    looked: float
    lent: float = 0.0  # seconds of others


_current: ContextVar[_Limits | None] = ContextVar("limits", default=None)


def nobody() -> float:
    """Lets nobody by."""
    return 0.0


@contextmanager
def within(
    seconds: float, wanted: Callable[[], object], let_by: Callable[[], float] = nobody
) -> Iterator[None]:
    """Ends passes in the body after so many seconds, or when `wanted` raises an exception. let_by: called
    between sub-layers; it may wait while others compute, and returns the seconds, which do not count."""
    now = time.monotonic()
    token = _current.set(_Limits(now, seconds, wanted, let_by, now))
    try:
        yield
    finally:
        _current.reset(token)


def look() -> None:
    """Called between sub-layers. Lets a shorter pass by; raises PassTooLongError, or what `wanted` raises.
    Outside `within` it does nothing."""
    limits = _current.get()
    if limits is None:
        return
    limits.lent += limits.let_by()
    now = time.monotonic()
    if now - limits.began - limits.lent > limits.seconds:
        raise PassTooLongError(limits.seconds)
    if now - limits.looked > SECONDS_BETWEEN_LOOKS:
        limits.looked = now
        limits.wanted()


def own_time() -> float:
    """Seconds that only grow, and stand still while others are let by: what is timed is one's own."""
    limits = _current.get()
    return time.perf_counter() - (0.0 if limits is None else limits.lent)
