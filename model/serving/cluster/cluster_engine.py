"""The engine of an app whose models run on a cluster. Views cannot tell it from one that runs them here."""

import secrets
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import is_dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from cachetools import LRUCache

from model.download.wheel import Progress
from model.loading.registry import known
from model.serving.cluster.actors import NOT_REACHED, Actors, ClusterError
from model.serving.cluster.messages import DESCRIBE, READ, TRACE, Bounds
from model.serving.engine import Background, Engine, Request
from model.serving.events import Found
from model.serving.holdings import Load
from model.serving.trace_files import opens_file
from model.system.elsewhere import Elsewhere
from model.system.settings import MEGABYTE, settings
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model

OVERHEAD = 64  # bytes of what is small

Waiting = Callable[[int], object]
_turn: ContextVar[tuple[Waiting, Background | None] | None] = ContextVar("turn", default=None)


class ClusterEngine(Engine):
    """As `Engine`, but models and traces lie with actors of a Ray cluster, and small answers travel. What was
    read of traces is kept here, within the bound for traces. Trace files are opened here."""

    def __init__(self, address: str, **how: Any) -> None:
        """address: of the cluster. how: as `Engine`."""
        super().__init__(**how)

        bounds = settings()
        trace_bytes = bounds.trace_megabytes * MEGABYTE
        self._actors = Actors(
            address,
            Bounds(bounds.model_megabytes * MEGABYTE, trace_bytes, bounds.cluster_idle),
            copies=bounds.cluster_copies,
            gpus=bounds.cluster_gpus,
        )
        self._far: dict[str, Model] = {}
        self._read: LRUCache[Hashable, Any] = LRUCache(trace_bytes, getsizeof=_size)
        self._replica = secrets.token_hex(8)

    def has(self, name: str) -> bool:
        return super().has(name) if opens_file(name) else name in self._far

    def model(self, name: str, progress: Progress) -> "Model":
        if opens_file(name):
            return super().model(name, progress)
        known(name)  # the owner of this app decides what it opens
        with self._keys.held(name, self._wanted), self._refusals(name):
            if name not in self._far:
                self._far[name] = self._described(name, progress)
            return self._far[name]

    def prepare(self, name: str) -> None:
        self.model(name, lambda sentence, share: None)

    def trace(self, request: Request, waiting: Waiting) -> Trace:
        if opens_file(request.model):
            return super().trace(request, waiting)
        from model.serving.cluster.far_trace import Source, far_trace

        model = self.model(request.model, lambda sentence, share: None)
        outline = self._kept((request,))
        self._tell(Found(request.model, outline is not None))
        if outline is None:
            with self._keys.held(request, self._wanted), self._refusals(request.model):
                outline = self._kept((request,))
                if outline is None:
                    given = {"request": request}
                    outline = self._asked(request.model, TRACE, given, key=request, waiting=waiting)
                    for path, part in outline.along.items():
                        self._keep_read((request, path), part)
                    outline = replace(outline, along={})
                    self._keep_read((request,), outline)
        source = Source(request, partial(self._part, request), partial(self._ask, request.model))
        return far_trace(outline, source, model.target_tokenizer.named)

    def loads(self) -> list[Load]:
        return self._actors.loads()

    def can_keep(self, trace: Trace) -> bool:
        return trace.nbytes <= self._read.maxsize

    @contextmanager
    def turn(self, waiting: Waiting, background: Background | None = None) -> Iterator[None]:
        """What is asked of the cluster in the body waits there for its turn, under this visitor's name."""
        with super().turn(waiting, background):
            token = _turn.set((waiting, background))
            try:
                yield
            finally:
                _turn.reset(token)

    def _described(self, name: str, progress: Progress) -> "Model":
        from model.serving.cluster.far_model import FarModel

        told = self._asked(name, DESCRIBE, {}, key=name, tell=progress)
        return FarModel(
            name, told, partial(self._ask, name), lambda one: self.trace(one, lambda place: None)
        )

    def _part(self, request: Request, path: tuple[str | int, ...]) -> Any:
        """What lies at a path of a trace."""

        found = self._kept((request, path))
        if found is None:
            given = {"request": request, "path": path}
            found = self._asked(request.model, READ, given, key=request)
            self._keep_read((request, path), found)
        return found

    def _ask(self, model: str, function: str, given: Mapping[str, Any]) -> Any:
        """As `Elsewhere.ask`. What follows from a model or a trace alone is asked once."""
        from model.serving.cluster.asking import reference

        sources = (getattr(one, "source_", None) for one in given.values())
        request = next((source.request for source in sources if source is not None), None)
        told = ((name, reference(one) or one) for name, one in given.items())
        key = model, function, *told
        try:
            found = self._kept(key)
        except TypeError:  # arguments that cannot be compared
            return self._asked(model, function, given, key=request or model)
        if found is None:
            found = self._asked(model, function, given, key=request or model)
            if not isinstance(found, Iterator):
                self._keep_read(key, found)
        return found

    def _asked(
        self,
        model: str,
        function: str,
        given: Mapping[str, Any],
        *,
        key: Hashable,
        waiting: Waiting | None = None,
        tell: Progress = lambda sentence, share: None,
    ) -> Any:
        """The answer of a model's actor. One that dies meanwhile is asked again when it has come back."""
        self._actors.join()  # which says what Ray reads when it is imported
        from model.serving.cluster.asking import Asking

        turn = _turn.get()
        background = None if turn is None else turn[1]
        asking = Asking(
            self._actors,
            model,
            wanted=self._wanted if background is None else background.wanted,
            visitor=f"{self._replica}/{self._visitor() if background is None else background.visitor}",
            background=background is not None,
            waiting=waiting or (turn[0] if turn is not None else (lambda place: None)),
            tell=tell,
            told=self._tell,
            found=self._found,
        )
        return asking.answer(function, given, key)

    def _found(self, model: str, reference: Any) -> Any:
        """What stands here for something that stays on the cluster."""
        match reference:
            case ("model",):
                return self._far[model]
            case ("trace", Request() as request):
                return self.trace(request, lambda place: None)
            case ("record", Request() as request, (kind, number)):
                return getattr(self.trace(request, lambda place: None), kind)[number]
        raise ClusterError(NOT_REACHED)

    def _kept(self, key: Hashable) -> Any:
        with self._guard:
            return self._read.get(key)

    def _keep_read(self, key: Hashable, value: Any) -> None:
        with self._guard:
            if _size(value) <= self._read.maxsize:
                self._read[key] = _read_only(value)


def _read_only(value: Any) -> Any:
    """Arrays as a trace has them: visitors share what was read."""
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    for one in _within(value):
        _read_only(one)
    return value


def _size(value: Any) -> int:
    """Bytes that something takes that was read."""
    held = int(value.nbytes) if isinstance(value, np.ndarray) else 0
    return held + OVERHEAD + sum(map(_size, _within(value)))


def _within(value: Any) -> Iterable[Any]:
    """What a value is made of."""
    if isinstance(value, Mapping):
        return value.values()
    if isinstance(value, tuple | list | set | frozenset):
        return value
    if is_dataclass(value) and not isinstance(value, Elsewhere):  # those lie on the cluster
        return vars(value).values()
    return ()
