"""Loaded models and recent traces, shared by all visitors and bounded in bytes.

Forward passes share the cores, so they stand in one line; whoever waits is told the place.
"""

import gc
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from cachetools import LRUCache

from model.intervention import Intervention
from model.registry import load_model
from model.trace import Trace
from model.wheel import Progress

if TYPE_CHECKING:
    from model.live import Model

K = TypeVar("K")
V = TypeVar("V")

MEGABYTE = 1_000_000
MODEL_BYTES = int(os.environ.get("ATTENTION_MODEL_MB", "2000")) * MEGABYTE
LEAST_TRACE_MB, MOST_TRACE_MB = 300, 2000
SECONDS_BETWEEN_NEWS = 0.2
PASSES_AT_ONCE = 1  # torch itself spreads one pass over the cores


def default_trace_megabytes() -> int:
    """A tenth of the machine's memory: a trace of 1,024 tokens of a GPT-2 takes 440 MB, and two of
    them lie side by side where a run is changed."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // MEGABYTE
    return min(max(machine // 10, LEAST_TRACE_MB), MOST_TRACE_MB)


TRACE_BYTES = int(os.environ.get("ATTENTION_TRACE_MB", default_trace_megabytes())) * MEGABYTE


@dataclass(frozen=True)
class Request:
    """One pass that a visitor asks for. Its values are the key under which the result is kept."""

    model: str
    text: str
    target: str | None = None
    intervention: Intervention = Intervention()
    full: bool = False  # with feed-forward activations and norm outputs
    continued: tuple[int, ...] = ()  # what the model has written so far, step by step


@dataclass(frozen=True)
class Eviction:
    """A model that was put away to make room for another one. Chosen again, it is loaded anew."""

    name: str
    newcomer: str


class Engine:
    """Loads each model once, traces each request once, keeps what was used last."""

    def __init__(self, model_bytes: int = MODEL_BYTES, trace_bytes: int = TRACE_BYTES) -> None:
        self._models = _Models(model_bytes)
        self._evictions: list[Eviction] = []
        self._traces: LRUCache[Request, Trace] = LRUCache(trace_bytes, getsizeof=trace_size)
        self._news: dict[str, tuple[str, float | None]] = {}  # how far each model's loading is
        self._keys = _KeyLocks()
        self._guard = threading.Lock()
        self._line = Line(PASSES_AT_ONCE)

    def has(self, name: str) -> bool:
        """Whether a model is loaded, so that no waiting is needed."""
        with self._guard:
            return name in self._models

    def model(self, name: str, progress: Progress) -> "Model":
        """The model, loaded now if it is not yet. Raises ValueError as `load_model` does."""
        with self._keys.held(name, lambda: progress(*self._news.get(name, ("Waiting", None)))):
            with self._guard:
                if name in self._models:
                    return self._models[name]
            bound = int(self._models.maxsize)
            model = load_model(name, progress=self._announcing(name, progress), most_bytes=bound)
            # Streamlit collects garbage after every rerun; with torch in the heap that takes 0.2 s.
            gc.collect()
            gc.freeze()
            self._keep(self._models, name, model)
            with self._guard:
                gone, self._models.gone = self._models.gone, []
                self._evictions += [Eviction(one, name) for one in gone]
            return model

    @property
    def evictions(self) -> tuple[Eviction, ...]:
        """Every model that was put away since the start, the oldest first."""
        with self._guard:
            return tuple(self._evictions)

    def trace(self, request: Request, waiting: Callable[[int], object]) -> Trace:
        """The trace of a request; `waiting` is told the place in line, from 1, while there is one.

        Raises ValueError as `Model.trace` does, for texts and changes that cannot be run.
        """
        with self._keys.held(request):
            with self._guard:
                if request in self._traces:
                    return self._traces[request]
            model = self.model(request.model, lambda sentence, share: None)
            with self._line.place(waiting):
                trace = model.trace(
                    request.text,
                    request.target,
                    request.intervention,
                    continued=request.continued,
                    record="full" if request.full else "attention",
                )
            self._keep(self._traces, request, trace)
            return trace

    @contextmanager
    def turn(self, waiting: Callable[[int], object]) -> Iterator[None]:
        """A turn in the line of passes, for a computation that is no single trace. Whoever has much
        to compute takes many short turns, so that others come in between."""
        with self._line.place(waiting):
            yield

    def _announcing(self, name: str, progress: Progress) -> Progress:
        """Progress told to whoever loads the model, and kept for those who wait for it."""

        def announce(sentence: str, share: float | None) -> None:
            self._news[name] = (sentence, share)
            progress(sentence, share)

        return announce

    def _keep(self, cache: LRUCache[K, V], key: K, value: V) -> None:
        """Keeps a value unless it alone is over the bound."""
        with self._guard, suppress(ValueError):
            cache[key] = value


class _Models(LRUCache[str, "Model"]):
    """Loaded models within a bound of bytes; `gone` are the names that had to make room."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(most_bytes, getsizeof=model_size)
        self.gone: list[str] = []

    def popitem(self) -> tuple[str, "Model"]:
        name, model = super().popitem()
        self.gone.append(name)
        return name, model


class Line:
    """A line in front of something that few can use at once, first come, first served."""

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._waiting: list[object] = []
        self._moved = threading.Condition()

    @contextmanager
    def place(self, waiting: Callable[[int], object]) -> Iterator[None]:
        """Waits for a turn. `waiting` hears the place in line (1 = next)."""
        ticket = object()
        with self._moved:
            self._waiting.append(ticket)
        try:
            self._stand(ticket, waiting)
        except BaseException:
            with self._moved:
                self._waiting.remove(ticket)
                self._moved.notify_all()
            raise
        try:
            yield
        finally:
            with self._moved:
                self._free += 1
                self._moved.notify_all()

    def _stand(self, ticket: object, waiting: Callable[[int], object]) -> None:
        told = 0
        while True:
            with self._moved:
                place = self._waiting.index(ticket) + 1
                if place <= self._free:
                    self._waiting.remove(ticket)
                    self._free -= 1
                    return
                if place == told:
                    self._moved.wait()
                    continue
            waiting(place)  # outside the lock: it may draw on a page, or be ended with it
            told = place


class _KeyLocks:
    """One lock a key, so that two who ask for the same thing do the work once."""

    def __init__(self) -> None:
        self._locks: dict[object, tuple[threading.RLock, int]] = {}
        self._guard = threading.Lock()

    @contextmanager
    def held(self, key: object, meanwhile: Callable[[], object] = lambda: None) -> Iterator[None]:
        """Holds the key's lock; calls `meanwhile` now and then while somebody else holds it."""
        with self._guard:
            lock, users = self._locks.get(key, (threading.RLock(), 0))
            self._locks[key] = (lock, users + 1)
        try:
            while not lock.acquire(timeout=SECONDS_BETWEEN_NEWS):
                meanwhile()
            try:
                yield
            finally:
                lock.release()
        finally:
            with self._guard:
                lock, users = self._locks[key]
                if users == 1:
                    del self._locks[key]
                else:
                    self._locks[key] = (lock, users - 1)


def model_size(model: "Model") -> int:
    """Bytes of a model's weights, shared ones once."""
    weights = model.module.state_dict().values()
    return sum({weight.data_ptr(): weight.nbytes for weight in weights}.values())


def trace_size(trace: Trace) -> int:
    """Bytes that a trace keeps from being freed."""
    return trace.nbytes
