"""Training on demand: one run at a time for the whole process; the others wait in a queue.

Each step of a run takes a turn among all visitors' passes, on one thread of torch. A run ends when its
visitor stops it or has left. Nothing is written to disk.
"""

import itertools
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from time import monotonic
from typing import Literal

import torch
from torch import Tensor

from model.nn.transformer import Transformer
from model.run.model import Model
from model.system.fair_queue import FairQueue, QueueFullError
from model.system.jobs import Job, Jobs
from model.system.threads import one_thread
from model.training import trainer
from model.training.checkpoints import TrainingRun
from model.training.recipe import Recipe
from model.training.trainer import TrainingProgress, TrainingState

WorkshopState = Literal["waiting", "training", "done", "stopped", "gone"]

PATIENCE = 30.0  # seconds without a sign of the visitor, after which a run ends
KEPT = 40  # runs whose results are kept: one of 1,000 steps takes a few megabytes
QUEUE_AT_MOST = 60  # a class and as many again
AVERAGED = 10  # steps whose losses make one point of the curve


@dataclass(frozen=True, eq=False)
class Report:
    """Where a run stands."""

    state: WorkshopState
    place: int  # in the queue: 1 = next; 0 when it is not waiting
    recipe: Recipe
    step: int
    losses: tuple[tuple[int, float], ...]  # (step, mean loss of the steps up to it, nats a token)
    seconds_left: float | None  # None before the first step
    training_run: TrainingRun | None  # of the checkpoints so far; None before the first
    wait: float | None = None  # seconds until it begins, while it waits; None: not known yet

    @property
    def over(self) -> bool:
        """Whether nothing will be added."""
        return self.state in ("done", "stopped", "gone")

    @property
    def missed(self) -> list[str]:
        """The gates of the recipe that the last evaluation missed, as sentences; all without an
        evaluation."""
        scores = {} if self.training_run is None else dict(self.training_run.history[-1])
        return self.recipe.failures(scores)


class _Training(Job):
    """One visitor's run and what it has reached."""

    patience = PATIENCE

    def __init__(
        self,
        visitor: Hashable,
        recipe: Recipe,
        ticket: int,
        present: Callable[[Hashable], bool],
    ) -> None:
        super().__init__(visitor)
        self.recipe, self.number, self._present = recipe, ticket, present
        self.step, self.seconds = 0, 0.0
        self.losses: tuple[tuple[int, float], ...] = ()
        self.training_run: TrainingRun | None = None
        self._recent: list[float] = []
        self._heads: dict[str, str] = {}

    @property
    def steps_left(self) -> int:
        return self.recipe.steps - self.step

    def still_wanted(self) -> None:
        """While it waits, whoever has any page open keeps the place."""
        if self.state == "waiting" and self._present(self.visitor):
            self.look()
        super().still_wanted()

    def note(self, run: TrainingState, progress: TrainingProgress, seconds: float) -> None:
        """Keeps what a step has reached."""
        self._recent.append(progress.loss)
        if len(self._recent) == AVERAGED or progress.step == self.recipe.steps:
            self.losses += ((progress.step, sum(self._recent) / len(self._recent)),)
            self._recent.clear()
        if progress.evaluation is not None:
            self._heads = progress.evaluation.heads
        if progress.evaluation is not None or progress.step == 1:
            key = f"{self.recipe.name}, run {self.number}"
            self.training_run = _training_run(key, self.recipe, run, self._heads)
        self.step, self.seconds = progress.step, seconds


class Workshop:
    """Where visitors have a model trained. Safe to share between threads.

    turn: given the visitor, what is held around each step, so that steps share the cores with the
    app's passes. present: whether a visitor has a page open, so that a place in the queue is kept.
    """

    def __init__(
        self,
        *,
        turn: Callable[[Hashable], AbstractContextManager[object]] = nullcontext,
        present: Callable[[Hashable], bool] = lambda visitor: False,
    ) -> None:
        self._turn, self._present = turn, present
        self._pace: float | None = None  # seconds a step, of the latest run
        self._jobs: Jobs[int, _Training] = Jobs(KEPT, FairQueue(1, QUEUE_AT_MOST))
        self._tickets = itertools.count(1)

    def ask(self, recipe: Recipe, visitor: Hashable = None) -> int:
        """Puts a run in the queue and returns its ticket. Raises ValueError if the queue is full."""
        ticket = next(self._tickets)
        try:
            self._jobs.start(ticket, _Training(visitor, recipe, ticket, self._present), self._train)
        except QueueFullError as error:
            many = "of your runs" if error.own else "visitors"
            sentence = f"Too many {many} are waiting to train a model. Try again in a few minutes."
            raise ValueError(sentence) from error
        return ticket

    def look(self, ticket: int) -> Report | None:
        """Where a run stands; also the sign that its visitor is there. None if it was let go."""
        job = self._jobs.looked_at(ticket)
        if job is None:
            return None
        state: WorkshopState = "training" if job.state == "running" else job.state
        left = job.seconds / job.step * (job.recipe.steps - job.step) if job.step else None
        place = self._jobs.place(job)
        wait = self._wait(place) if state == "waiting" else None
        return Report(state, place, job.recipe, job.step, job.losses, left, job.training_run, wait)

    def stop(self, ticket: int) -> None:
        """Ends a run, or takes it out of the queue; what it has reached stays."""
        self._jobs.stop(ticket)

    def wait(self, seconds: float) -> None:
        """Returns when nobody trains any more, or when a run takes longer than so many seconds to end."""
        self._jobs.wait(seconds)

    def _wait(self, place: int) -> float | None:
        """Seconds until the run at a place in the queue begins, at the latest pace; None before a step."""
        if self._pace is None:
            return None
        ahead = [
            job
            for job in self._jobs.under_way()
            if job.state == "running" or 0 < self._jobs.place(job) < place
        ]
        return self._pace * sum(job.steps_left for job in ahead)

    def _train(self, job: _Training) -> None:
        began = monotonic()
        job.look()  # who kept a place on another page has a moment to come back
        with one_thread():
            run = trainer.begin(job.recipe)
            steps = trainer.train(run)
            while True:
                job.still_wanted()
                with self._turn(job.visitor):
                    progress = next(steps, None)
                if progress is None:
                    return
                job.note(run, progress, monotonic() - began)
                self._pace = job.seconds / job.step


def _training_run(
    key: str, recipe: Recipe, run: TrainingState, heads: dict[str, str]
) -> TrainingRun | None:
    """What a run has reached so far, as a training run; None before its first checkpoint. It holds the
    checkpoints' weights, not the run."""
    weights: dict[int, dict[str, Tensor]] = dict(run.checkpoints)
    if not weights:
        return None

    def model(step: int) -> Model:
        with torch.device("meta"):
            module = Transformer(recipe.config)
        floats = {name: value.float() for name, value in weights[step].items()}
        module.load_state_dict(floats, assign=True)
        return Model(recipe.name, module, recipe.task.tokenizer)

    return TrainingRun(key, tuple(run.history), heads, tuple(sorted(weights)), model)
