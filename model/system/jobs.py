"""Work in the background: one job for a key, until it is done, is stopped, or nobody looks at it."""

import logging
import math
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextvars import copy_context
from functools import partial
from time import monotonic
from typing import Generic, Literal, TypeVar

from model.system.fair_queue import FairQueue, LeftError, Ticket, first_to_go

JobState = Literal["waiting", "running", "done", "stopped", "gone"]
UNEXPECTED = "It ended unexpectedly; the server's log says more."


class UnwantedError(Exception):
    """A job was stopped, or nobody has looked at it for its patience."""


class Job:
    """Work for a visitor. Whoever looks at it keeps it going. What it found is in fields of a class below
    this one, and is kept however it ends."""

    patience = math.inf  # seconds without a look after which it ends
    ticket: Ticket  # from its start on

    def __init__(self, visitor: Hashable = None) -> None:
        self.visitor = visitor
        self.state: JobState = "waiting"
        self.refusal: str | None = None  # why it was not done, in a sentence
        self.stopped, self.ended = threading.Event(), threading.Event()
        self._seen = monotonic()

    def look(self) -> None:
        """Says that somebody still waits for it."""
        self._seen = monotonic()

    def still_wanted(self) -> None:
        """Raises UnwantedError where it was stopped, or nobody has looked at it for a while."""
        if self.stopped.is_set() or monotonic() - self._seen > self.patience:
            raise UnwantedError


K = TypeVar("K", bound=Hashable)
J = TypeVar("J", bound=Job)


class Jobs(Generic[K, J]):
    """At most one job for a key, each in a thread of its own. Of those that ended `kept` stay; what goes is
    of the visitor who has the most, and there what was looked at longest ago. line: where they wait for their
    turns; without one all run at once."""

    def __init__(self, kept: int, line: FairQueue | None = None) -> None:
        self._kept, self._queue = kept, line or FairQueue(sys.maxsize)
        self._jobs: OrderedDict[K, J] = OrderedDict()
        self._guard = threading.Lock()

    def known(self, key: K) -> J | None:
        """The job of a key, running or ended. This is no look at it."""
        with self._guard:
            return self._jobs.get(key)

    def looked_at(self, key: K) -> J | None:
        """The same, and the sign that somebody waits for it."""
        with self._guard:
            if (job := self._jobs.get(key)) is not None:
                job.look()
                self._jobs.move_to_end(key)
            return job

    def start(self, key: K, job: J, work: Callable[[J], object], *, again: bool = False) -> J:
        """The job of a key that is under way or done; else this one, which begins now.

        Args:
            work: is called with the job, in a thread of its own.
            again: what is done is done once more.

        Raises QueueFullError.
        """
        with self._guard:
            known = self._jobs.get(key)
            if known is not None and (
                not known.ended.is_set() or (known.state == "done" and not again)
            ):
                known.look()
                return known
            job.ticket = self._queue.join(job.visitor)
            self._jobs[key] = job
            self._jobs.move_to_end(key)
            ended = {other: one.visitor for other, one in self._jobs.items() if one.ended.is_set()}
            while ended and len(self._jobs) > self._kept:
                del ended[gone := first_to_go(ended)], self._jobs[gone]
        # The log names the click that began it.
        run = partial(copy_context().run, self._run, job, work)
        threading.Thread(target=run, name="job", daemon=True).start()
        return job

    def stop(self, key: K) -> None:
        """Ends a job at its next step, or takes it out of the queue."""
        job = self.known(key)
        if job is None:
            return
        job.stopped.set()
        if not job.ended.is_set():
            job.state = "stopped"
        self._queue.leave(job.ticket)

    def under_way(self) -> list[J]:
        """The jobs that run or wait. This is no look at them."""
        with self._guard:
            return [job for job in self._jobs.values() if not job.ended.is_set()]

    def place(self, job: J) -> int:
        """Where a job stands in the queue: 1 is next, 0 is not in it."""
        return self._queue.place_of(job.ticket)

    def wait(self, seconds: float) -> None:
        """Returns when no job is under way, or when one takes longer than so many seconds to end."""
        with self._guard:
            jobs = list(self._jobs.values())
        for job in jobs:
            job.ended.wait(seconds)

    def _run(self, job: J, work: Callable[[J], object]) -> None:
        try:
            with self._queue.turn(job.ticket, lambda place: None, job.still_wanted):
                job.still_wanted()
                job.state = "running"
                work(job)
            job.state = "done"
        except (UnwantedError, LeftError):
            job.state = "stopped" if job.stopped.is_set() else "gone"
        except ValueError as refusal:
            job.state, job.refusal = "stopped", str(refusal)
        except BaseException:  # a fault in our code: the visitor must not wait for ever
            job.state, job.refusal = "stopped", UNEXPECTED
            logging.getLogger(__name__).exception("A background job failed.")
        finally:
            job.ended.set()
