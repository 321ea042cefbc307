"""The cluster as an app sees it: joined once, joined again where its head was started anew, and the actors of
each model on it."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

from cachetools import LRUCache

from model.loading.registry import models
from model.loading.shipped import ASSETS
from model.loading.untrained import untrained_bytes
from model.serving.cluster.messages import Bounds
from model.serving.engine import Load
from model.system.cluster import belongs, joined
from model.system.fair_queue import nothing
from model.system.settings import MEGABYTE
from model.system.version import VERSION

NAMESPACE = f"attention {VERSION}"  # a newer app begins actors of its own, while the older one is still used
PROCESS_BYTES = 600 * MEGABYTE  # of an actor with PyTorch, before it loads a model
SECONDS_TO_START = 120.0  # for an actor to begin: on a busy machine PyTorch's import takes long
SECONDS_BETWEEN_LOOKS = 0.2
SECONDS_TO_SAY_SO = 0.05  # for one that has begun
SECONDS_TO_REPORT = 5.0
SECONDS_KNOWN = 5.0  # for which the list of a model's actors and their queues are believed
SECONDS_OF_USE = 30.0  # after it was asked last, for which a model is not unloaded for another one
BUSY = 3  # who wait before another actor of the same model is begun

NOT_REACHED = (
    "The cluster that runs the models cannot be reached now. What you typed is kept: "
    "try again in a minute."
)


class ClusterError(ValueError):
    """The cluster cannot do what was asked; the sentence says why."""


@dataclass(eq=False)
class Actor:
    """One actor of a model. begun: Ray's promise of its first answer, until that has come."""

    number: int
    handle: Any
    begun: Any
    under_way: int = 0  # questions of this app
    waiting: int = 0  # in its queue, as it said last

    @property
    def busy(self) -> int:
        return max(self.under_way, self.waiting)

    def has_begun(self) -> bool:
        """Whether it has started, so that it answers at once."""
        import ray

        if self.begun is not None and ray.wait([self.begun], timeout=SECONDS_TO_SAY_SO)[0]:
            self.begun = None
        return self.begun is None


class Actors:
    """The actors of all models, found by their names on the cluster, so that replicas share them.

    address: of the cluster, as `joined` takes it. copies: of a model, at most. gpus: of an actor.
    """

    def __init__(self, address: str, bounds: Bounds, *, copies: int, gpus: float) -> None:
        self._address, self._bounds, self._copies, self._gpus = address, bounds, copies, gpus
        self._guard = threading.RLock()
        self._joined, self._is_joined = ExitStack(), False
        self._known: dict[str, tuple[float, list[Actor]]] = {}  # by model: when they were listed
        self._last: LRUCache[object, int] = LRUCache(10_000)  # which actor has the answers of a key

    def join(self) -> None:
        """Joins the cluster, once. Raises ValueError where that fails."""
        with self._guard:
            if not self._is_joined:
                cluster = joined(self._address, cpus=os.cpu_count() or 1, serving=True)
                self._joined.enter_context(cluster)
                self._is_joined = True

    def join_again(self) -> None:
        """Joins the cluster anew where this app is no part of it any more. Raises ClusterError where nobody
        answers there."""
        import ray

        with self._guard:
            is_part = belongs()
            if is_part:
                return
            self._known.clear()
            try:
                if is_part is None:
                    raise ValueError("Its head does not answer.")
                self._is_joined = False
                self._joined.close()
                ray.shutdown()  # whoever in this process had joined it
                self.join()
            except ValueError as error:
                raise ClusterError(f"{NOT_REACHED} ({error})") from error

    def of(
        self,
        model: str,
        key: object,
        wanted: Callable[[], object] = nothing,
        tell: Callable[[str, float | None], object] = lambda sentence, share: None,
    ) -> Actor:
        """The actor to ask: the one that answered about the same key before, else the one with the fewest who
        wait. The first is begun where there is none.

        Args:
            model: its name.
            key: what the question is about, such as a run; equal keys go to one actor.
            wanted: is called while the first begins; what it raises ends the wait.
            tell: is told what is being done, and the share done, 0 to 1, if known.

        Raises ClusterError where there is no room.
        """
        self.join()
        with self._guard:
            listed = self._listed(model)
        actors = [one for one in listed if one.has_begun()]
        if not actors:
            return self._begun(model, wanted, tell)
        number = self._last.get(key)
        chosen = next((one for one in actors if one.number == number), None)
        if chosen is None:
            chosen = min(actors, key=lambda one: one.busy)
            if chosen.busy >= BUSY and len(listed) < self._copies:
                _check_belongs()
                if self._most_free() >= self._needs(model):
                    self.begin(model, len(listed))
        with self._guard:
            self._last[key] = chosen.number
        return chosen

    def forget(self, model: str) -> None:
        """Looks for the actors of a model anew, when they are asked for next."""
        with self._guard:
            self._known[model] = 0.0, self._known.get(model, (0.0, []))[1]

    def loads(self) -> list[Load]:
        """How all actors on the cluster are doing, those that answer in time."""
        self.join()
        return sorted(load for _, _, load in self._reports())

    def begin(self, model: str, number: int) -> Any:
        """Begins an actor of a model where there is none of this number, without waiting for it; its
        handle."""
        import ray

        from model.serving.cluster.host import ModelHost

        memory = self._needs(model)
        kind = ray.remote(
            num_cpus=0,  # cores are shared by all; memory decides where a model finds room
            num_gpus=self._gpus,
            memory=memory,
            max_restarts=-1,
            max_concurrency=32,
            concurrency_groups={"control": 4},
        )(ModelHost)
        named = kind.options(
            name=f"{model}#{number}", namespace=NAMESPACE, lifetime="detached", get_if_exists=True
        )
        return named.remote(model, self._bounds, memory)

    def _listed(self, model: str) -> list[Actor]:
        when, actors = self._known.get(model, (0.0, []))
        if actors and time.monotonic() - when < SECONDS_KNOWN:
            return actors
        known = {one.handle: one for one in actors}
        handles = _handles(f"{model}#{number}" for number in range(self._copies))
        listed = [
            known.get(handle) or Actor(number, handle, handle.load.remote())
            for number, handle in enumerate(handles)
        ]
        self._known[model] = time.monotonic(), listed
        return listed

    def _begun(
        self,
        model: str,
        wanted: Callable[[], object],
        tell: Callable[[str, float | None], object],
    ) -> Actor:
        """The first actor of a model, once it has begun."""
        import ray

        _check_belongs()
        self._check_size(model)
        tell("Looking for room on the cluster", None)
        handle = self.begin(model, 0)
        begun, began = handle.load.remote(), time.monotonic()
        looked = began
        while not ray.wait([begun], timeout=SECONDS_BETWEEN_LOOKS)[0]:
            wanted()
            now = time.monotonic()
            if now - began > SECONDS_TO_START:
                _check_belongs()
                if self._most_free() < self._needs(model):
                    ray.kill(handle)
                raise ClusterError(
                    f"The cluster has no room for {model} now. Try again later, or choose a model that "
                    "others use already."
                )
            if now - looked > SECONDS_KNOWN:
                looked = now
                self._make_room(model)
        ray.get(begun)
        self.forget(model)
        return Actor(0, handle, None)

    def _make_room(self, model: str) -> None:
        """Where there is too little room for a model, ends the one that was not used for longest."""
        import ray

        _check_belongs()
        if self._most_free() >= self._needs(model):
            return  # it is starting
        loads = [load for _, _, load in self._reports() if load.model != model]
        others = [one for one in loads if not one.under_way and one.idle > SECONDS_OF_USE]
        if others and not any(one.model == model for one in self.loads()):
            unused = max(others, key=lambda one: one.idle).model
            for handle in _handles(f"{unused}#{number}" for number in range(self._copies)):
                ray.kill(handle)
            self.forget(unused)

    def _reports(self) -> Iterator[tuple[str, int, Load]]:
        """Of each actor that answers in time: its machine, the memory that it reserves, how it is doing."""
        import ray

        actors = ray.util.list_named_actors(all_namespaces=True)
        named = (one["name"] for one in actors if one["namespace"] == NAMESPACE)
        asked = [handle.report.remote() for name in named for handle in _handles([name])]
        ready = asked and ray.wait(asked, num_returns=len(asked), timeout=SECONDS_TO_REPORT)[0]
        for one in ready:
            with suppress(ray.exceptions.RayError):
                yield ray.get(one)

    def _most_free(self) -> float:
        """Bytes of memory that are free on the machine that has most of it. One that an actor reserves before
        it has started counts as free."""
        free = _machines("memory")
        for machine, memory, _ in self._reports():
            if machine in free:
                free[machine] -= memory
        return max(free.values(), default=0.0)

    def _needs(self, model: str) -> int:
        """Bytes of memory that an actor of a model reserves."""
        bounds = self._bounds
        return PROCESS_BYTES + _size_of(model, bounds.model_bytes) + bounds.trace_bytes

    def _check_size(self, model: str) -> None:
        """Raises ClusterError for a model that no machine of the cluster could hold."""
        most = max(_machines("memory").values(), default=0.0)
        if self._needs(model) > most:
            raise ClusterError(
                f"{model} needs {self._needs(model) / MEGABYTE:,.0f} MB with its runs, and the largest "
                f"machine of the cluster has {most / MEGABYTE:,.0f} MB. Choose a smaller model."
            )
        if self._gpus > max(_machines("GPU").values(), default=0.0):
            raise ClusterError("No machine of the cluster has a GPU.")


def _machines(resource: str) -> dict[str, float]:
    """How much of a resource each machine has."""
    import ray

    return {
        one["NodeID"]: one["Resources"].get(resource, 0.0) for one in ray.nodes() if one["Alive"]
    }


def _handles(names: Iterable[str]) -> Iterator[Any]:
    """The actors of these names, to the first that there is not."""
    import ray

    with suppress(ValueError):
        for name in names:
            yield ray.get_actor(name, NAMESPACE)


def _check_belongs() -> None:
    """Raises ray's error where this app is no part of the cluster any more: what Ray knows of its machines is
    asked through a client that ends the process then."""
    import ray

    if not belongs():
        raise ray.exceptions.RayError("The cluster has another head.")


def _size_of(model: str, bound: int) -> int:
    """Bytes of a model's weights in float32, as far as they are known before it is loaded; else the most that
    a model may take."""
    entry = models.found(model)
    if entry is None:
        return bound
    if entry.untrained:
        return untrained_bytes(entry.name)
    folder = ASSETS / entry.name if entry.ships else entry.folder
    files = [] if folder is None else folder.glob("*.safetensors")
    size = 2 * sum(file.stat().st_size for file in files)  # kept in half precision
    return min(size or bound, bound)
