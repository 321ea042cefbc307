"""By actors on a Ray cluster: each holds the model, and has two slices at most.

Plain actors, not Ray Data: this process cuts the corpus, and Ray Data cannot read from it; its error for a
batch that kills its actor does not name the batch; and only the process that hands out the slices knows which
of them count.
"""

import os
from collections import Counter, deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass

import ray
from ray.actor import ActorHandle
from ray.exceptions import (
    NodeDiedError,
    ObjectLostError,
    RayActorError,
    RayTaskError,
    WorkerCrashedError,
)

from model.profile.corpus_profile import Profile
from model.profile.slices import ATTEMPTS, Slice, of_weights, refuse_what_kills, slice_profile
from model.profile.tables import ProfileScope
from model.profile.window import Profiled
from model.system.cluster import joined

UNDER_WAY = 2  # slices of one actor: the second is there when the first is done
LOST = (NodeDiedError, ObjectLostError, RayActorError, WorkerCrashedError)


class Worker:
    """What an actor does."""

    def __init__(self, about: ProfileScope) -> None:
        self._about = about

    def load(self) -> None:
        """Loads the model, once. Raises ValueError for another one than the run began with."""
        self._profiled()

    def profile(self, slice_: Slice) -> Profile:
        """The profile of a few windows."""
        return slice_profile(slice_, self._about, self._profiled())

    def _profiled(self) -> Profiled:
        return of_weights(self._about.model, self._about.weights)


def by_actors(
    slices: Iterator[Slice],
    about: ProfileScope,
    profiled: Profiled,
    *,
    cluster: str,
    workers: int,
    gpus: float | None,
) -> Generator[Profile]:
    """The profiles of all slices, in the order in which they are ready.

    Args:
        profiled: is not read: each actor loads the model.
        cluster: as `joined` takes it.
        workers: actors; 0: as many as there is room for. One for which there is no room yet begins later.
        gpus: of each actor; None: one where the cluster has any.
    """
    with joined(cluster, cpus=workers or os.cpu_count() or 1):
        has = ray.cluster_resources()
        gpus = float(has.get("GPU", 0) > 0) if gpus is None else gpus
        needs = {"CPU": 1.0, "GPU": gpus} if gpus else {"CPU": 1.0}
        _check_room(needs)
        room = min(int(has.get(name, 0) // share) for name, share in needs.items())
        crew = _Crew(slices, about, needs)
        try:
            yield from crew.profiles(workers or room)
        finally:
            crew.end()


def _check_room(needs: dict[str, float]) -> None:
    """Raises ValueError where no machine has what an actor needs: it would wait for ever."""
    machines = [one["Resources"] for one in ray.nodes() if one["Alive"]]
    if not any(all(has.get(name, 0) >= share for name, share in needs.items()) for has in machines):
        wanted = " and ".join(f"{share:g} {name}" for name, share in needs.items())
        raise ValueError(f"No machine of the cluster has {wanted} for a worker.")


@dataclass(frozen=True)
class _Task:
    """What an actor has been given. one: None while it loads the model."""

    actor: ActorHandle
    one: Slice | None


class _Crew:
    """The actors of a run, and which of them has which slice. Each slice leaves the crew as one profile; what
    an actor had when it was lost is given to another."""

    def __init__(
        self, slices: Iterator[Slice], about: ProfileScope, needs: dict[str, float]
    ) -> None:
        self._slices, self._about = slices, about
        self._actor = ray.remote(
            num_cpus=needs["CPU"], num_gpus=needs.get("GPU", 0), max_restarts=0
        )(Worker)
        self._waiting: deque[Slice] = deque()
        self._tasks: dict[ray.ObjectRef, _Task] = {}  # in the order in which they were given
        self._loaded: list[ActorHandle] = []
        self._deaths: Counter[int | None] = Counter()  # by the first window of a slice

    def profiles(self, workers: int) -> Iterator[Profile]:
        """The profiles of all slices."""
        for _ in range(workers):
            self._hire()
        while self._more() or any(task.one for task in self._tasks.values()):
            self._hand_out()
            (ready,), _ = ray.wait(list(self._tasks), num_returns=1)
            try:
                found = ray.get(ready)
            except LOST:
                self._replace(self._tasks[ready].actor)
            except RayTaskError as error:  # what the worker raised
                raise error.cause from error
            else:
                done = self._tasks.pop(ready)
                if done.one is None:
                    self._loaded.append(done.actor)
                    self._deaths[None] = 0
                else:
                    yield found

    def end(self) -> None:
        """Ends all actors, whatever they do."""
        for actor in {*self._loaded, *(task.actor for task in self._tasks.values())}:
            ray.kill(actor)

    def _hire(self) -> None:
        actor = self._actor.remote(self._about)
        self._tasks[actor.load.remote()] = _Task(actor, None)

    def _more(self) -> bool:
        """Whether a slice waits for an actor."""
        if not self._waiting:
            self._waiting.extend(one for one in [next(self._slices, None)] if one is not None)
        return bool(self._waiting)

    def _hand_out(self) -> None:
        """Gives every actor that has loaded its model a slice, and then another."""
        held = Counter(task.actor for task in self._tasks.values())
        for most in range(1, UNDER_WAY + 1):
            for actor in self._loaded:
                if held[actor] < most and self._more():
                    one = self._waiting.popleft()
                    self._tasks[actor.profile.remote(one)] = _Task(actor, one)
                    held[actor] += 1

    def _replace(self, lost: ActorHandle) -> None:
        """Another actor in place of one that is lost; its slices come first."""
        ray.kill(lost)  # it may only be out of reach
        refs = [ref for ref, task in self._tasks.items() if task.actor == lost]
        slices = [one for one in (self._tasks.pop(ref).one for ref in refs) if one is not None]
        self._waiting.extendleft(reversed(slices))
        if slices:  # an actor takes one after the other: the first of them was under way
            self._loaded.remove(lost)
            self._deaths[slices[0].first] += 1
            refuse_what_kills(slices[0], self._deaths[slices[0].first])
        else:
            self._deaths[None] += 1
            if self._deaths[None] >= ATTEMPTS:
                raise ValueError(
                    f"{ATTEMPTS} workers have ended while they loaded the model. What was done before is "
                    "kept."
                )
        self._hire()
