"""Training on demand: one run at a time for the whole process, the others stand in line.

A run takes its turn with everybody's passes, one step at a time, on one thread of torch, and ends when
its visitor asks for it or is no longer there. Nothing is written to disk.
"""

import itertools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from model.nn.transformer import Transformer
from model.run.model import Model
from model.training import trainer
from model.training.checkpoints import Course, Record
from model.training.recipe import Recipe
from model.training.trainer import Progress, Run

State = Literal["waiting", "training", "done", "stopped", "gone"]

PATIENCE = 30.0  # seconds without a sign of the visitor, after which a run ends
KEPT = 12  # runs whose results are kept
LINE_AT_MOST = 20
AVERAGED = 10  # steps whose losses make one point of the curve


@dataclass(frozen=True, eq=False)
class Report:
    """Where a run stands."""

    state: State
    place: int  # in line: 1 = next; 0 when it is not waiting
    recipe: Recipe
    step: int
    losses: tuple[tuple[int, float], ...]  # (step, mean loss of the steps up to it, nats a token)
    seconds_left: float | None  # None before the first step
    course: Course | None  # of the checkpoints so far; None before the first

    @property
    def over(self) -> bool:
        """Whether nothing will be added."""
        return self.state in ("done", "stopped", "gone")

    @property
    def missed(self) -> list[str]:
        """The gates of the recipe that the last exam missed, as sentences; all without an exam."""
        scores = {} if self.course is None else dict(self.course.history[-1])
        return self.recipe.failures(scores)


@dataclass
class _Job:
    """One visitor's run. Changed under the workshop's guard only."""

    ticket: int
    visitor: Hashable
    recipe: Recipe
    seen: float
    state: State = "waiting"
    step: int = 0
    began: float = 0.0
    now: float = 0.0
    recent: list[float] = field(default_factory=list)
    losses: list[tuple[int, float]] = field(default_factory=list)
    history: tuple[Record, ...] = ()
    heads: dict[str, str] = field(default_factory=dict)
    weights: dict[int, dict[str, Tensor]] = field(default_factory=dict)


class Workshop:
    """Where visitors have a model trained. Safe to share between threads.

    turn: given the visitor, what is held around each step, so that steps share the cores with the
    app's passes. clock: seconds.
    """

    def __init__(
        self,
        *,
        turn: Callable[[Hashable], AbstractContextManager[object]] = nullcontext,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._turn, self._clock = turn, clock
        self._jobs: OrderedDict[int, _Job] = OrderedDict()  # the one looked at last is last
        self._line: list[_Job] = []
        self._tickets = itertools.count(1)
        self._guard = threading.RLock()
        self._worker: threading.Thread | None = None

    def ask(self, recipe: Recipe, visitor: Hashable = None) -> int:
        """Puts a run in the line and returns its ticket. Raises ValueError if the line is full."""
        with self._guard:
            self._leave_absent()
            if len(self._line) >= LINE_AT_MOST:
                raise ValueError("Too many are waiting for a training. Try again in some minutes.")
            job = _Job(next(self._tickets), visitor, recipe, seen=self._clock())
            self._jobs[job.ticket] = job
            self._line.append(job)
            self._forget_old()
            if self._worker is None:
                self._worker = threading.Thread(target=self._work, name="training", daemon=True)
                self._worker.start()
            return job.ticket

    def look(self, ticket: int) -> Report | None:
        """Where a run stands; also the sign that its visitor is there. None if it was let go."""
        with self._guard:
            job = self._jobs.get(ticket)
            if job is None:
                return None
            job.seen = self._clock()
            self._jobs.move_to_end(ticket)
            self._leave_absent()
            return self._report(job)

    def stop(self, ticket: int) -> None:
        """Ends a run, or takes it out of the line; what it has reached stays."""
        with self._guard:
            job = self._jobs.get(ticket)
            if job is not None:
                self._end(job, "stopped")

    def wait(self, seconds: float) -> None:
        """Returns when nobody trains any more, or after so many seconds."""
        worker = self._worker
        if worker is not None:
            worker.join(seconds)

    def _report(self, job: _Job) -> Report:
        left = None
        if job.step:
            left = (job.now - job.began) / job.step * (job.recipe.steps - job.step)
        place = self._line.index(job) + 1 if job in self._line else 0
        losses = tuple(job.losses)
        return Report(job.state, place, job.recipe, job.step, losses, left, _course(job))

    def _leave_absent(self) -> None:
        """Ends the runs whose visitors have not been seen for a while."""
        for job in [*self._jobs.values()]:
            if self._clock() - job.seen > PATIENCE:
                self._end(job, "gone")

    def _end(self, job: _Job, state: State) -> None:
        if job.state in ("waiting", "training"):
            job.state = state
        if job in self._line:
            self._line.remove(job)

    def _forget_old(self) -> None:
        over = [job for job in self._jobs.values() if job.state not in ("waiting", "training")]
        for job in over[: max(0, len(self._jobs) - KEPT)]:
            del self._jobs[job.ticket]

    def _work(self) -> None:
        with self._at_work(), _one_thread():
            while (job := self._next()) is not None:
                try:
                    self._train(job)
                finally:
                    with self._guard:
                        self._end(job, "stopped")

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """Even where a run breaks off with an error, the next visitor's can begin."""
        try:
            yield
        except BaseException:
            with self._guard:
                self._worker = None
            raise

    def _next(self) -> _Job | None:
        with self._guard:
            self._leave_absent()
            if not self._line:
                self._worker = None
                return None
            job = self._line.pop(0)
            job.state, job.began = "training", self._clock()
            return job

    def _train(self, job: _Job) -> None:
        run = trainer.begin(job.recipe)
        steps = trainer.train(run)
        while self._goes_on(job):
            with self._turn(job.visitor):
                progress = next(steps, None)
            if progress is None:
                with self._guard:
                    self._end(job, "done")
                return
            self._note(job, run, progress)

    def _goes_on(self, job: _Job) -> bool:
        with self._guard:
            self._leave_absent()
            return job.state == "training"

    def _note(self, job: _Job, run: Run, progress: Progress) -> None:
        with self._guard:
            job.step, job.now = progress.step, self._clock()
            job.recent.append(progress.loss)
            if len(job.recent) == AVERAGED or progress.step == progress.steps:
                job.losses.append((progress.step, sum(job.recent) / len(job.recent)))
                job.recent.clear()
            if progress.step == 1 or progress.exam is not None:
                job.history, job.weights = tuple(run.history), dict(run.checkpoints)
            if progress.exam is not None:
                job.heads = progress.exam.heads


def _course(job: _Job) -> Course | None:
    """What a run has reached so far, as a course. It holds the job's weights, not the job."""
    if not job.weights:
        return None
    weights, recipe = job.weights, job.recipe

    def model(step: int) -> Model:
        with torch.device("meta"):
            module = Transformer(recipe.config)
        floats = {name: value.float() for name, value in weights[step].items()}
        module.load_state_dict(floats, assign=True)
        return Model(recipe.name, module, recipe.task.tokenizer)

    key = f"{recipe.name}, run {job.ticket}"
    return Course(key, job.history, job.heads, tuple(sorted(weights)), model)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Torch computes on one thread here. The number is shared with threads that start meanwhile."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
