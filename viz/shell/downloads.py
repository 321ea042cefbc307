"""Models on their way: downloads and loads in the background, shared by all visitors."""

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache

from model.download.entries import Entry, fetched, is_on_disk
from model.download.hub import CancelledError
from model.download.wheel import Progress
from model.hub.library import missing_library
from model.loading.registry import models
from model.system.jobs import Job, Jobs
from model.system.settings import settings
from viz.state.engine import engine

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


@cache
def fetching() -> Fetching:
    """The one of this process."""
    return Fetching()


def entry_to_fetch() -> Entry | None:
    """The model that the server's owner wants fetched in the background; None where there is none, or it
    cannot run."""
    name = settings().fetch
    return models.found(name) if name is not None and not missing_library() else None


def fetch_behind(entry: Entry, once: threading.Event | None = None) -> None:
    """Fetches a model's files in the background, unless they are here or on their way. once: an event that
    the download waits for; pages show the job from the start."""

    def work(told: Progress, stopped: threading.Event) -> None:
        if once is not None:
            once.wait()
        fetched(entry, told, stopped)

    if not is_on_disk(entry):
        fetching().fetch(entry.name, work)


def prepare(entry: Entry) -> None:
    """Loads a model before its first visitor, once its files have come, if it fits beside those that are
    loaded. Where it is refused, whoever opens it is told why."""
    job = fetching().known(entry.name)
    if job is not None:
        job.ended.wait()
    if is_on_disk(entry):
        with suppress(ValueError):
            engine().prepare(entry.name)
