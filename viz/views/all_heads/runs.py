"""Ablations of all heads on their way, shared by all visitors: one run for one request. Pure."""

import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field

from cachetools import LRUCache

from model.analysis.heads.ablations import Ablations
from model.serving.engine import Request

PATIENCE = 20.0  # seconds for which a run goes on although nobody looks at it
KEPT = 64  # runs and their results


class ForgottenError(Exception):
    """Nobody has looked at a run for a while."""


@dataclass
class Run:
    """One pass a head, under way or ended. Whoever looks at it keeps it going. visitor: who began it."""

    visitor: Hashable = None
    found: Ablations | None = None  # what is known so far
    ahead: int = 0  # how many stand before it in the line for the model
    failed: bool = False
    ended: threading.Event = field(default_factory=threading.Event)
    looked_at: float = field(default_factory=time.monotonic)

    @property
    def complete(self) -> bool:
        """Whether every head has had its pass."""
        return self.found is not None and self.found.complete

    def look(self) -> None:
        """Says that somebody still waits for it."""
        self.looked_at = time.monotonic()

    def still_wanted(self) -> None:
        """Raises ForgottenError where nobody has looked for a while."""
        if time.monotonic() - self.looked_at > PATIENCE:
            raise ForgottenError


Work = Callable[[Run], Iterator[Ablations]]


class Runs:
    """At most one run a request; the last ones are kept with what they found."""

    def __init__(self) -> None:
        self._runs: LRUCache[Request, Run] = LRUCache(KEPT)
        self._guard = threading.Lock()

    def known(self, request: Request) -> Run | None:
        """The run of a request, if there was one."""
        with self._guard:
            return self._runs.get(request)

    def started(self, request: Request, work: Work, visitor: Hashable = None) -> Run:
        """The run of a request: the one that is complete or under way, else a new one of the visitor's."""
        with self._guard:
            run: Run | None = self._runs.get(request)
            if run is not None and (run.complete or not run.ended.is_set()):
                run.look()
                return run
            run = self._runs[request] = Run(visitor)
        threading.Thread(target=_go, args=(run, work), name="ablations", daemon=True).start()
        return run


def _go(run: Run, work: Work) -> None:
    try:
        for found in work(run):
            run.found = found
            run.still_wanted()
    except ForgottenError:
        pass  # what was found is kept
    except Exception:  # a mistake of ours: the visitor must not wait for ever
        run.failed = True
        logging.getLogger(__name__).exception("The ablations of all heads ended early.")
    finally:
        run.ended.set()
