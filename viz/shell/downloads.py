"""Models on their way: downloads and loads in the background, shared by all visitors. Pure."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from model.download.transfer import CancelledError
from model.download.wheel import Progress

ENDED_KEPT = 32  # jobs that have ended, for those who have not looked yet

Work = Callable[[Progress, threading.Event], object]


@dataclass
class Job:
    """One model on its way: how far it is, and in the end whether it came."""

    sentence: str = "Starting"
    share: float | None = None
    done: bool = False
    refusal: str | None = None  # why it did not come
    cancelled: threading.Event = field(default_factory=threading.Event)


class Fetching:
    """At most one job a model. A job that ended stays until it is started again or many others ended."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._guard = threading.Lock()

    def start(self, name: str, work: Work) -> Job:
        """The job of a model: the one that is running, or a new one."""
        with self._guard:
            running = self._jobs.get(name)
            if running is not None and not running.done:
                return running
            ended = [known for known, job in self._jobs.items() if job.done]
            for known in ended[: max(0, len(ended) - ENDED_KEPT)]:
                del self._jobs[known]
            job = self._jobs[name] = Job()
        threading.Thread(
            target=self._run, args=(job, work), name=f"fetch {name}", daemon=True
        ).start()
        return job

    def job(self, name: str) -> Job | None:
        """The job of a model, running or ended."""
        return self._jobs.get(name)

    def stop(self, name: str) -> None:
        """Ends a job at its next step; what has arrived is kept."""
        job = self._jobs.get(name)
        if job is not None:
            job.cancelled.set()

    def forget(self, name: str) -> None:
        """Drops a job that has ended."""
        with self._guard:
            job = self._jobs.get(name)
            if job is not None and job.done:
                del self._jobs[name]

    @staticmethod
    def _run(job: Job, work: Work) -> None:
        def told(sentence: str, share: float | None) -> None:
            job.sentence, job.share = sentence, share
            if job.cancelled.is_set():
                raise CancelledError("The download was stopped. What has arrived is kept.")

        try:
            work(told, job.cancelled)
        except ValueError as refusal:
            job.refusal = str(refusal)
        except BaseException:  # a mistake of ours: the visitor must not wait for ever
            job.refusal = "It ended in an unexpected way; the server's log says more."
            raise
        finally:
            job.done = True
