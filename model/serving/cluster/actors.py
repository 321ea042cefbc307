"""The cluster as an app sees it: joined once, joined again where its head was started anew, and the actors of
each model on it."""

import os
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from cachetools import LRUCache

from model.serving.cluster.messages import Bounds
from model.serving.cluster.room import has_room, most_free, needed
from model.serving.holdings import Load
from model.system.cluster import belongs, joined
from model.system.fair_queue import nothing
from model.system.settings import MEGABYTE
from model.system.version import VERSION

NAMESPACE = f"attention {VERSION}"  # a newer app begins actors of its own, while the older one is still used
SECONDS_TO_START = 120.0  # for an actor to begin: on a busy machine PyTorch's import takes long
SECONDS_BETWEEN_LOOKS = 0.2
SECONDS_TO_SAY_SO = 0.05  # for one that has begun
SECONDS_KNOWN = 5.0  # for which the list of a model's actors and their queues are believed
SECONDS_OF_USE = 30.0  # after it was asked last, for which a model is not unloaded for another one
BUSY = 3  # who wait before another actor of the same model is begun

NOT_REACHED = (
    "The cluster that runs the models cannot be reached now. What you typed is kept: "
    "try again in a minute."
)


class ClusterError(ValueError):
    """The cluster cannot do what was asked; the sentence says why."""


class Actor:
    """One actor of a model."""

    def __init__(self, name: str, number: int, handle: Any, begun: Any = None) -> None:
        """begun: what comes once it has started; None where it has."""
        self.name, self.number, self.handle, self.begun = name, number, handle, begun
        self.under_way = 0  # of this app
        self.waiting = 0  # as it said last

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
        self._started: LRUCache[object, bool] = LRUCache(10_000)  # actors that were seen to start
        self._last: LRUCache[object, int] = LRUCache(10_000)  # which actor holds what was asked

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
        wait. The first is begun where there is none. Raises ClusterError where there is no room."""
        self.join()
        with self._guard:
            listed = self._listed(model)
        actors = [one for one in listed if one.has_begun()]
        with self._guard:
            self._started.update({one.handle._actor_id: True for one in actors})
        if not actors:
            return self._begun(model, 0, wanted, tell)
        number = self._last.get(key)
        chosen = next((one for one in actors if one.number == number), None)
        if chosen is None:
            chosen = min(actors, key=lambda one: one.busy)
            if chosen.busy >= BUSY and len(listed) < self._copies:
                self._begin_beside(model, len(listed))
        with self._guard:
            self._last[key] = chosen.number
        return chosen

    def forget(self, model: str) -> None:
        """Looks for the actors of a model anew, when they are asked for next."""
        with self._guard:
            self._known.pop(model, None)

    def loads(self, seconds: float = 5.0) -> list[Load]:
        """How all actors on the cluster are doing, those that answer in time."""
        import ray

        self.join()
        handles = [
            self._handle(one["name"])
            for one in ray.util.list_named_actors(all_namespaces=True)
            if one["namespace"] == NAMESPACE
        ]
        asked = [handle.load.remote() for handle in handles if handle is not None]
        ready, _ = ray.wait(asked, num_returns=len(asked), timeout=seconds) if asked else ([], [])
        found = []
        for one in ready:
            try:
                found.append(ray.get(one))
            except ray.exceptions.RayError:
                continue
        return sorted(found)

    def _listed(self, model: str) -> list[Actor]:
        when, actors = self._known.get(model, (0.0, []))
        if actors and time.monotonic() - when < SECONDS_KNOWN:
            return actors
        known = {one.number: one for one in actors}
        found = []
        for number in range(self._copies):
            handle = self._handle(_name(model, number))
            if handle is None:
                break
            actor = known.get(number)
            same = actor is not None and actor.handle._actor_id == handle._actor_id
            found.append(
                actor
                if actor is not None and same
                else Actor(model, number, handle, self._start_of(handle))
            )
        self._known[model] = time.monotonic(), found
        return found

    def _start_of(self, handle: Any) -> Any:
        """What comes once an actor has started; None where it is known to have."""
        return None if handle._actor_id in self._started else handle.ready.remote()

    def _handle(self, name: str) -> Any:
        import ray

        try:
            return ray.get_actor(name, NAMESPACE)
        except ValueError:
            return None

    def _begin_beside(self, model: str, number: int) -> None:
        """Begins one more actor of a model, without waiting for it."""
        if belongs() and most_free() >= self._needs(model):
            self._handle_of_new(model, number)

    def _begun(
        self,
        model: str,
        number: int,
        wanted: Callable[[], object],
        tell: Callable[[str, float | None], object],
    ) -> Actor:
        """An actor, once it has begun."""
        import ray

        _check_belongs()
        self._check_size(model)
        tell("Looking for room on the cluster", None)
        handle = self._handle_of_new(model, number)
        begun, began = handle.ready.remote(), time.monotonic()
        looked = began
        while not ray.wait([begun], timeout=SECONDS_BETWEEN_LOOKS)[0]:
            wanted()
            now = time.monotonic()
            if now - began > SECONDS_TO_START:
                if not has_room(handle):
                    ray.kill(handle)
                raise ClusterError(
                    f"The cluster has no room for {model} now. Try again later, or choose a model that "
                    "others use already."
                )
            if now - looked > SECONDS_KNOWN:
                looked = now
                self._make_room(model, handle)
        ray.get(begun)
        self.forget(model)
        return Actor(model, number, handle)

    def _make_room(self, model: str, newcomer: Any) -> None:
        """Where there is too little room, ends the model that was not used for longest."""
        import ray

        _check_belongs()
        if has_room(newcomer) or most_free() >= self._needs(model):
            return  # it is starting
        others = [
            one
            for one in self.loads()
            if one.model != model and not one.under_way and one.idle > SECONDS_OF_USE
        ]
        if others and not has_room(newcomer):  # it may have found it meanwhile
            unused = max(others, key=lambda one: one.idle)
            for number in range(self._copies):
                handle = self._handle(_name(unused.model, number))
                if handle is not None:
                    ray.kill(handle)
            self.forget(unused.model)

    def _needs(self, model: str) -> int:
        """Bytes of memory that an actor of a model reserves."""
        return needed(model, self._bounds)

    def _check_size(self, model: str) -> None:
        """Raises ClusterError for a model that no machine of the cluster could hold."""
        import ray

        machines = [one["Resources"] for one in ray.nodes() if one["Alive"]]
        most = max((one.get("memory", 0.0) for one in machines), default=0.0)
        if self._needs(model) > most:
            raise ClusterError(
                f"{model} needs {self._needs(model) / MEGABYTE:,.0f} MB with its runs, and the largest "
                f"machine of the cluster has {most / MEGABYTE:,.0f} MB. Choose a smaller model."
            )
        if self._gpus and not any(one.get("GPU", 0.0) >= self._gpus for one in machines):
            raise ClusterError("No machine of the cluster has a GPU.")

    def _handle_of_new(self, model: str, number: int) -> Any:
        import ray

        from model.serving.cluster.host import ModelHost

        kind = ray.remote(
            num_cpus=0,  # cores are shared by all; memory decides where a model finds room
            num_gpus=self._gpus,
            memory=self._needs(model),
            max_restarts=-1,
            max_concurrency=32,
            concurrency_groups={"control": 4},
        )(ModelHost)
        named = kind.options(
            name=_name(model, number),
            namespace=NAMESPACE,
            lifetime="detached",
            get_if_exists=True,
        )
        return named.remote(model, self._bounds)


def _check_belongs() -> None:
    """Raises ray's error where this app is no part of the cluster any more: what Ray knows of its machines is
    asked through a client that ends the process then."""
    import ray

    if not belongs():
        raise ray.exceptions.RayError("The cluster has another head.")


def _name(model: str, number: int) -> str:
    return f"{model}#{number}"
