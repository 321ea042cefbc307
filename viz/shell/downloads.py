"""Models on their way: downloads and loads in the background, shared by all visitors. Pure."""

import threading
from collections.abc import Callable

from model.download.transfer import CancelledError
from model.download.wheel import Progress
from model.system.jobs import Job, Jobs

ENDED_KEPT = 32  # jobs that have ended, for those who have not looked yet

Work = Callable[[Progress, threading.Event], object]


class Download(Job):
    """One model on its way: how far it is, and in the end whether it came."""

    sentence = "Starting"
    share: float | None = None

    def told(self, sentence: str, share: float | None) -> None:
        """Notes how far it is. Raises CancelledError where it was stopped."""
        self.sentence, self.share = sentence, share
        if self.stopped.is_set():
            raise CancelledError("The download was stopped. The part that has arrived is kept.")


class Fetching(Jobs[str, Download]):
    """At most one job for a model, by its name."""

    def __init__(self) -> None:
        super().__init__(ENDED_KEPT)

    def fetch(self, name: str, work: Work) -> Download:
        """The job of a model: the one that is running, or a new one."""
        return self.start(name, Download(), lambda job: work(job.told, job.stopped), again=True)
