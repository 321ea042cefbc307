"""Loaded models, recent traces and trace files, shared by all visitors and bounded in bytes.

Forward passes share the cores, so they wait in one queue, in which visitors take turns. Who waits is told the
place. When a visitor leaves, the pass is cancelled.
"""

import gc
import math
import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from model.download.wheel import Progress
from model.loading.registry import hub_models, load_model, models, silent, untrained_models
from model.nn.intervention import Intervention
from model.serving.trace_files import (
    File,
    as_model,
    file_of,
    opens_file,
    run_of_file,
    run_of_uploaded,
    shown,
)
from model.system import allocator, deadline
from model.system.fair_cache import FairCache
from model.system.fair_queue import FairQueue, KeyLocks, nothing
from model.system.machine import machine_bytes
from model.system.memory import LARGEST_RECORD, AllReadError, enough_memory
from model.system.settings import MEGABYTE, settings
from model.trace.lazy import LARGEST_COPY
from model.trace.trace import Trace
from model.trace.uploaded import is_uploaded, uploaded_name

if TYPE_CHECKING:
    from torch import Tensor

    from model.run.model import Model
    from model.run.recorded import RecordedModel


class Loaded(NamedTuple):
    """A model was loaded."""

    model: str
    seconds: float
    bytes: int


class CacheLookup(NamedTuple):
    """A trace was asked for; hit: it was in the cache."""

    model: str
    hit: bool


class Passed(NamedTuple):
    """A pass was run; `waited` is its time in the queue."""

    model: str
    tokens: int
    seconds: float
    waited: float


class Refused(NamedTuple):
    """A model or a trace was refused; `kind` is the class of the error."""

    model: str
    kind: str


Event = Loaded | CacheLookup | Passed | Refused


def known(model: str) -> str:
    """A model's name if it is a public one, else "other": somebody typed it."""
    return model if model in {*models, *hub_models, *untrained_models} else "other"


def facts(happened: Event) -> dict[str, object]:
    """What a line of a log says of an event."""
    found: dict[str, object] = happened._asdict() | {"model": known(happened.model)}
    for seconds, name in (("seconds", "ms"), ("waited", "waited_ms")):
        if seconds in found:
            found[name] = round(1000 * getattr(happened, seconds), 1)
            del found[seconds]
    return found


class ModelUnloaded(NamedTuple):
    """A model that was unloaded to make room for another one."""

    name: str
    newcomer: str


@dataclass(frozen=True)
class Holdings:
    """What an engine keeps at one moment. The bytes are those of all its models and traces in memory: a page
    may still read one that is not kept any more."""

    models: tuple[str, ...]  # that are kept
    models_in_memory: int
    model_bytes: int
    traces: int  # that are kept
    trace_bytes: int
    waiting: int  # in the queue for passes


NOT_LOADED = "", 0, 0, 0, 0.0, 0, 0, 0, 0, 0, 0, 0.0  # of a `Load`, after the model


class Load(NamedTuple):
    """One loaded model and how busy it is."""

    model: str
    machine: str
    process: int
    waiting: int  # in the queue for its passes
    under_way: int  # asked and not answered yet
    idle: float  # seconds since something was asked
    model_bytes: int
    traces: int
    trace_bytes: int
    passes: int
    refused: int
    failed: int  # by a fault of ours
    runs: float  # seconds since it began


def loads_of(
    sizes: Mapping[str, int],
    traces: Sequence[tuple[str, int]],
    happened: Mapping[tuple[str, type[Event]], int],
    waiting: int,
    runs: float,
) -> list[Load]:
    """The loads of the models of this process.

    Args:
        sizes: bytes by model.
        traces: model and bytes of each.
        happened: how often, by model and event.
        waiting: passes in the queue of all models.
        runs: seconds since the process began.
    """
    return [
        Load(
            model=name,
            machine=socket.gethostname(),
            process=os.getpid(),
            waiting=waiting,
            under_way=0,
            idle=0.0,
            model_bytes=size,
            traces=sum(model == name for model, _ in traces),
            trace_bytes=sum(nbytes for model, nbytes in traces if model == name),
            passes=happened.get((name, Passed), 0),
            refused=happened.get((name, Refused), 0),
            failed=0,
            runs=runs,
        )
        for name, size in sizes.items()
    ]


class LoadedModels(FairCache[str, "Model"]):
    """Loaded models within a bound of bytes; `gone` are the names of those that were unloaded."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(most_bytes, model_size)
        self.gone: list[str] = []

    def popitem(self) -> tuple[str, "Model"]:
        name, model = super().popitem()
        self.gone.append(name)
        return name, model


def model_size(model: "Model") -> int:
    """Bytes of a model's weights, shared ones once."""
    return bytes_of(model.module.state_dict().values())


def weights_of(model: "Model") -> "WeakSet[Tensor]":
    """A model's weights, as long as they are in memory. They can outlive the model: the library's modules
    refer to each other in circles."""
    return WeakSet(model.module.parameters())


def bytes_of(weights: "Iterable[Tensor]") -> int:
    """Bytes of some weights, those that share memory once."""
    return sum({weight.data_ptr(): weight.nbytes for weight in weights}.values())


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
RecordLevel = Literal["attention", "full"]


PASSES_AT_ONCE = 1  # torch itself spreads one pass over the cores
UNREAD_SECONDS = 300.0  # after which a trace that nobody asked for is dropped: a pass makes it anew
QUIET_SECONDS = 30.0  # without a pass, after which no memory is kept for the next ones


@dataclass(frozen=True)
class Request:
    """One pass that a visitor asks for, and the key of its trace in the cache."""

    model: str
    text: str
    target: str | None = None
    intervention: Intervention = Intervention()
    full: bool = False  # with feed-forward activations and norm outputs
    continued: tuple[int, ...] = ()  # what the model has written so far, step by step
    changed: int = 0  # when the trace file was whose run this is; 0: of a model, or as it is now
    languages: tuple[str, ...] = ()  # that a translator reads and writes; none: those of its files


@dataclass(frozen=True)
class Background:
    """Work for a visitor outside the page's own thread. wanted: cancels a pass by raising."""

    visitor: Hashable
    wanted: Callable[[], object] = nothing


class Engine:
    """Loads each model once, traces each request once, and keeps what was used most recently.

    model_bytes, trace_bytes: bounds, those of the settings unless given. wanted: called often while somebody
    waits or computes; it raises where the visitor has left, and so cancels the pass. visitor: for whom
    this thread works. tell: is told what happens. make_way: called before each turn in the
    background; it waits while visitors' pages should go first. clock: seconds that only grow.
    """

    def __init__(
        self,
        model_bytes: int | None = None,
        trace_bytes: int | None = None,
        *,
        wanted: Callable[[], object] = nothing,
        visitor: Callable[[], Hashable] = nothing,
        tell: Callable[[Event], object] = lambda event: None,
        make_way: Callable[[], object] = nothing,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        bounds = settings()
        self._models = LoadedModels(model_bytes or bounds.model_megabytes * MEGABYTE)
        self._traces: FairCache[Request | File, Trace] = FairCache(
            trace_bytes or bounds.trace_bytes,
            lambda trace: trace.nbytes,
            visitor=visitor,
            clock=clock,
        )
        # Of all that was loaded and passed: a page may still read what is not kept any more.
        self._weights: list[WeakSet[Tensor]] = []
        # And for whom, and its bytes: to count those of all anew takes longer than a pass.
        self._passed: WeakKeyDictionary[Trace, tuple[Hashable, int]] = WeakKeyDictionary()
        read_at_once = min(2 * LARGEST_RECORD, machine_bytes() // 4)  # beyond what is kept
        self._most_bytes = self._traces.maxsize + max(self._traces.maxsize, read_at_once)
        self._queue = FairQueue(PASSES_AT_ONCE, bounds.longest_queue)
        self._seconds = bounds.pass_seconds
        self._wanted, self._visitor, self._told = wanted, visitor, tell
        self._happened: Counter[tuple[str, type[Event]]] = Counter()  # by model
        self._clock = clock
        self._began = self._passed_at = clock()
        self._is_tidy = True  # since the last pass
        self._make_way = make_way
        self._evictions: list[ModelUnloaded] = []
        self._news: dict[str, tuple[str, float | None]] = {}  # how far each model's loading is
        self._keys = KeyLocks()
        self._guard = threading.Lock()

    def has(self, name: str) -> bool:
        """Whether a model is loaded, so that no waiting is needed."""
        file = file_of(name) if opens_file(name) else None
        with self._guard:
            return name in self._models if file is None else file in self._traces

    def model(self, name: str, progress: Progress) -> "Model":
        """The model, loaded now if it is not yet. Raises ValueError as `load_model` does."""

        if opens_file(name):
            return self._recorded(file_of(name), progress)

        def tell() -> None:
            progress(*self._news.get(name, ("Waiting", None)))

        with self._keys.held(name, tell):
            model = self._known(self._models, name)
            if model is None:
                model = self._load(name, progress)
                self._keep(self._models, name, model)
                self._note_evictions(name)
                _collect()
            return model

    def keep_file(self, file: BytesIO, size: int) -> str:
        """Keeps the run of a trace file that was dropped on a page while there is room; its name. Raises
        ValueError as `load_trace`."""
        name = uploaded_name(file)
        with self._keys.held(name, self._wanted), self._refusals(name):
            if not self.has(name):
                with self.turn():
                    trace = run_of_uploaded(file, size, int(self._traces.maxsize))
                self._opened(file_of(name), trace)
        return name

    def run_in(self, name: str, reads: Callable[[], Trace]) -> Trace:
        """The run in another file, read in a turn of the queue and kept while there is room. name: of its
        content. Raises ValueError as `reads` and `turn`, and for more tokens than a page shows."""
        file = File(name, 0)
        with self._keys.held(name, self._wanted), self._refusals(name):
            trace = self._known(self._traces, file)
            if trace is None:
                with self.turn(), enough_memory("this file"):
                    trace = shown(reads())
                with self._guard:
                    self._passed[trace] = self._visitor(), trace.nbytes
                self._keep(self._traces, file, trace)
            return trace

    def _recorded(self, file: File, progress: Progress = silent) -> "RecordedModel":
        """The run of a trace file, read now if it is not kept."""
        with self._keys.held(file.model, self._wanted), self._refusals(file.model):
            trace = self._known(self._traces, file)
            if trace is None:
                progress("Reading the trace file", None)
                with self.turn():
                    trace = run_of_file(file, int(self._traces.maxsize))
            return self._opened(file, trace)

    def _opened(self, file: File, trace: Trace) -> "RecordedModel":
        """A run as a model. Its run is what is kept, so that its check is computed once."""
        model = as_model(file, trace)
        with self._guard:
            self._passed[model.run] = self._visitor(), model.run.nbytes
        self._keep(self._traces, file, model.run)
        return model

    def prepare(self, name: str) -> None:
        """Loads a model before anybody asks for it, and keeps it if it fits beside the others. Raises
        ValueError as `load_model` does."""
        with self._keys.held(name, nothing):
            if not self.has(name):
                model = self._load(name, lambda sentence, share: None)
                with self._guard:
                    if self._models.currsize + model_size(model) <= self._models.maxsize:
                        self._models[name] = model
                _collect()

    @property
    def evictions(self) -> tuple[ModelUnloaded, ...]:
        """Every model that was unloaded since the start, the oldest first."""
        return tuple(self._evictions)

    @property
    def holdings(self) -> Holdings:
        """What is in memory now, and how many wait."""
        with self._guard:
            self._weights = [weights for weights in self._weights if weights]
            return Holdings(
                models=tuple(self._models),
                models_in_memory=len(self._weights),
                model_bytes=sum(map(bytes_of, self._weights)),
                traces=len(self._traces),
                trace_bytes=sum(size for _, size in self._passed.values()),
                waiting=self._queue.waiting,
            )

    def give_back(self) -> None:
        """Returns freed memory to the system; first frees the models that a page still read when they were
        unloaded, and reads no more, and the traces that nobody has asked for in a while. As long as passes
        are run, some freed memory is kept for the next ones."""
        holdings = self.holdings
        with self._guard:
            since = self._clock() - UNREAD_SECONDS
            # A dropped file stays: nobody can read it again.
            unread = [key for key in self._traces.unused(since) if not is_uploaded(key.model)]
            for key in unread:
                del self._traces[key]
        if holdings.models_in_memory > len(holdings.models):
            _collect()
        elif unread or not (self._is_tidy or self._clock() - self._passed_at < QUIET_SECONDS):
            self._is_tidy = True
            gc.collect()  # what sessions that have ended leave behind
            allocator.give_back()
        else:
            allocator.give_back_spare()

    def loads(self) -> list[Load]:
        """The loaded models, and how busy each is."""
        with self._guard:
            sizes = {name: model_size(model) for name, model in self._models.kept()}
            traces = [(key.model, trace.nbytes) for key, trace in self._traces.kept()]
            happened = self._happened.copy()
        return loads_of(sizes, traces, happened, self._queue.waiting, self._clock() - self._began)

    def trace(self, request: Request, waiting: Callable[[int], object]) -> Trace:
        """The trace of a request; `waiting` is told the place in the queue, from 1, while there is one.

        Raises ValueError as `Model.trace` does, for texts and changes that cannot be run, and where
        the queue is full or the pass takes too long. A pass that is ended leaves nothing behind.
        """
        if opens_file(request.model):
            file, changed = file_of(request.model), request.changed
            run = self._recorded(file._replace(changed=changed or file.changed))
            given = request.text, request.target, request.intervention
            return run.trace(*given, continued=request.continued)
        with self._keys.held(request, self._wanted):
            known = self._known(self._traces, request)
            self._tell(CacheLookup(request.model, known is not None))
            if known is not None:
                return known
            model = self.model(request.model, lambda sentence, share: None)
            if request.languages:
                model = model.translating(*request.languages)
            asked = time.perf_counter()
            with self._refusals(request.model):
                from model.run.protocols import check_record, check_shown  # torch is there by now

                length = len(model.tokens(request.text)) + len(request.continued)
                check_shown(length)
                dropout = request.intervention.dropout > 0
                layers, full = len(model.attention_names), request.full
                size = check_record(model.config, length, layers, full=full, dropout=dropout)
            given = request.text, request.target, request.intervention
            work = float(length * model.parameter_count)
            with self._refusals(request.model), self.turn(waiting, work=work):
                self._check_room(size)
                began = deadline.own_time()
                record: RecordLevel = "full" if request.full else "attention"
                trace = model.trace(*given, continued=request.continued, record=record)
                if model.device.type != "cpu" and trace.nbytes <= LARGEST_COPY:
                    trace.fetch()  # pages read most of it, and would wait for each array
                seconds = deadline.own_time() - began
            tokens = len(trace.tokens) + len(trace.target_tokens)
            self._tell(Passed(request.model, tokens, seconds, began - asked))
            with self._guard:
                self._passed[trace] = self._visitor(), trace.nbytes
            self._keep(self._traces, request, trace)
            return trace

    def _check_room(self, size: int) -> None:
        """Raises AllReadError where pages read so many traces that another one of this size has no room. Who
        reads one already gets the next: its page could not be drawn, and would keep the first."""
        visitor = self._visitor()
        with self._guard:
            kept = {id(trace) for _, trace in self._traces.kept()}
            bytes_of_all = sum(size for _, size in self._passed.values())
            reads = any(
                whose == visitor is not None and id(trace) not in kept
                for trace, (whose, _) in self._passed.items()
            )
        if bytes_of_all + size > self._most_bytes and not reads:
            raise AllReadError

    def can_keep(self, trace: Trace) -> bool:
        """Whether a trace is within the bound. A larger one lives only while somebody reads it."""
        return trace.nbytes <= self._traces.maxsize

    @contextmanager
    def turn(
        self,
        waiting: Callable[[int], object] = lambda place: None,
        background: Background | None = None,
        *,
        work: float = math.inf,
    ) -> Iterator[None]:
        """Holds a turn in the queue of passes. Long work takes many short turns: others come in between.
        Passes in it are cancelled when the visitor leaves or the time is over. Between sub-layers a turn of
        much less work may come in.

        Args:
            waiting: is told the place in the queue.
            background: for work beside the page; it is never turned away, because it takes its own visitor's
                turns only. None: the work is for the page itself.
            work: tokens × weights; inf: not known.

        Raises QueueFullError, PassTooLongError and OutOfMemoryError.
        """
        asker = background or Background(self._visitor(), self._wanted)
        if background is not None:
            self._make_way()
        place = self._queue.place(
            waiting,
            asker.wanted,
            visitor=asker.visitor,
            however_long=background is not None,
            work=work,
        )
        with place as turn:
            computed = enough_memory("this computation")
            with deadline.within(self._seconds, asker.wanted, turn.let_by), computed:
                try:
                    yield
                finally:
                    self._passed_at, self._is_tidy = self._clock(), False

    def _load(self, name: str, progress: Progress) -> "Model":
        began = time.perf_counter()
        bound = int(self._models.maxsize)
        try:
            with self._refusals(name):
                announced = self._announcing(name, progress)
                model = load_model(name, progress=announced, most_bytes=bound)
        finally:
            self._news.pop(name, None)
        with self._guard:
            self._weights.append(weights_of(model))
        self._tell(Loaded(name, time.perf_counter() - began, model_size(model)))
        return model

    def _tell(self, event: Event) -> None:
        with self._guard:
            self._happened[event.model, type(event)] += 1
        self._told(event)

    def _announcing(self, name: str, progress: Progress) -> Progress:
        """Tells progress to the visitor who loads the model, and keeps it for others who wait."""

        def announce(sentence: str, share: float | None) -> None:
            self._news[name] = (sentence, share)
            progress(sentence, share)

        return announce

    @contextmanager
    def _refusals(self, model: str) -> Iterator[None]:
        """Tells of the refusals of the body, and raises them again."""
        try:
            yield
        except ValueError as refusal:
            self._tell(Refused(model, type(refusal).__name__))
            raise

    def _note_evictions(self, newcomer: str) -> None:
        """Notes which models were unloaded, and drops their traces: traces of long texts share the model's
        output matrix."""
        with self._guard:
            gone, self._models.gone = self._models.gone, []
            self._evictions += [ModelUnloaded(name, newcomer) for name in gone]
            for key in [one for one in self._traces if one.model in gone]:
                del self._traces[key]

    def _known(self, cache: FairCache[K, V], key: K) -> V | None:
        with self._guard:
            return cache.get(key)

    def _keep(self, cache: FairCache[K, V], key: K, value: V) -> None:
        """Keeps a value unless it alone is over the bound."""
        with self._guard, suppress(ValueError):
            cache[key] = value


def _collect() -> None:
    """Frees what unloaded models leave behind, and takes what is loaded out of later collections.

    Streamlit's collections of garbage take 0.2 s each while torch is in the heap and not frozen. What was
    frozen for an earlier model may be garbage now, so it is collected first.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    allocator.give_back_spare()  # what reading the files took, too
