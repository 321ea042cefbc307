"""Ablations of all heads in the background, shared by all visitors: one run for a request. Pure."""

from collections.abc import Callable, Hashable, Iterator

from model.analysis.heads.ablations import Ablations
from model.serving.engine import Request
from model.system.jobs import Job, Jobs

KEPT = 64  # runs and their results


class AblationRun(Job):
    """One pass for each head, under way or ended. It goes on while someone looks at it."""

    patience = 20.0
    found: Ablations | None = None  # what is known so far
    ahead = 0  # how many wait for the model before it

    @property
    def complete(self) -> bool:
        """Whether every head has had its pass."""
        return self.found is not None and self.found.complete


class AblationRuns(Jobs[Request, AblationRun]):
    """At most one run for a request; the last ones are kept with what they found."""

    def __init__(self) -> None:
        super().__init__(KEPT)

    def started(
        self,
        request: Request,
        work: Callable[[AblationRun], Iterator[Ablations]],
        visitor: Hashable = None,
    ) -> AblationRun:
        """The run of a request: the one that is complete or under way, else a new one of the visitor's."""

        def go(run: AblationRun) -> None:
            for found in work(run):
                run.found = found
                run.still_wanted()

        return self.start(request, AblationRun(visitor), go)
