"""The history of a training: its scores, its weights at each checkpoint, and a text read at each of them.

Models and traces are kept in caches that are bounded in bytes and shared by all visitors.
"""

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from cachetools import Cache, LRUCache, cachedmethod
from torch import Tensor

from model.loading.shipped import ASSETS, DamagedError, checkpoint_file, load_asset
from model.nn.config import Stack
from model.nn.places import Kind, Place, decoder_head
from model.run.model import Model
from model.system.files import NotReadError, json_object
from model.system.settings import MEGABYTE
from model.trace.arrays import Array
from model.trace.given import of_length
from model.trace.records import Attention, Token

CheckpointRecord = Mapping[str, float]  # "step", "loss" where steps were taken, and scores by name
CARD = "card.json"
_LOCK = attrgetter("_guard")
READ_AT_MOST = 128  # tokens of a text: the browser gets one map for each checkpoint


@dataclass(frozen=True, eq=False)
class TrainingRun:
    """One training: its measured scores, and the model at each checkpoint."""

    key: str  # names it in caches: another training run, another key
    history: tuple[CheckpointRecord, ...]
    heads: Mapping[str, str]  # {"induction": "L1H2"}: what a head does, and its label
    steps: tuple[int, ...]  # of the checkpoints, rising
    model: Callable[[int], Model]  # the model at one of these steps

    def head(self, what: str) -> tuple[str, int]:
        """The sub-layer and head of one of `heads`. Raises KeyError for others."""
        return decoder_head(self.heads[what], "cross" if what == "alignment" else "self")


def shipped_training_runs(assets: Path = ASSETS) -> tuple[str, ...]:
    """The names of the models that were shipped with checkpoints."""
    folders = (path.parent for path in sorted(assets.glob(f"*/{CARD}")))
    return tuple(folder.name for folder in folders if _card(folder).get("checkpoints"))


@cache
def shipped_training_run(name: str, assets: Path = ASSETS) -> TrainingRun:
    """The training run of a shipped model; its weights are read when they are asked for.

    Raises ValueError where no model of this name was shipped with checkpoints.
    """
    if name not in shipped_training_runs(assets):
        raise ValueError(f"No model {name!r} was shipped with checkpoints.")
    folder = assets / name
    card = _card(folder)

    def model(step: int) -> Model:
        return Model(name, *load_asset(folder, checkpoint_file(step))[:2])

    return TrainingRun(
        name, tuple(card["history"]), card["heads"], tuple(card["checkpoints"]), model
    )


def _card(folder: Path) -> dict[str, Any]:
    try:
        return json_object(folder / CARD)
    except NotReadError:
        raise
    except ValueError as error:
        raise DamagedError(f"The file {CARD} of {folder.name} {error}.") from error


@dataclass(frozen=True, eq=False)
class CheckpointTrace:
    """The attention of one pass over a text."""

    tokens: tuple[Token, ...]
    target_tokens: tuple[Token, ...]
    attention: Mapping[str, Attention]  # by name, in order of execution
    check: float  # largest difference between recomputed and recorded numbers of the whole pass

    @property
    def nbytes(self) -> int:
        """Bytes that it keeps from being freed."""
        return sum(
            array.nbytes for one in self.attention.values() for array in (*one.vectors, one.output)
        )


@dataclass(frozen=True, eq=False)
class CheckpointTraces:
    """The same text, read by the model at each checkpoint."""

    text: str  # as it was read
    steps: tuple[int, ...]
    checkpoints: tuple[CheckpointTrace, ...]
    unread: int  # tokens at the end of the text that are left out

    @property
    def last(self) -> CheckpointTrace:
        return self.checkpoints[-1]

    @property
    def check(self) -> float:
        """Largest difference between recomputed and recorded numbers, over all passes."""
        return max(trace.check for trace in self.checkpoints)

    def weights(self, place: str, head: int) -> Array:
        """(checkpoint, query, key): one head's weights at every checkpoint."""
        return np.stack([trace.attention[place].weights(head) for trace in self.checkpoints])

    def queries(self, place: str) -> tuple[Token, ...]:
        """The tokens that look."""
        read = self.last.target_tokens if self._targets(place) else self.last.tokens
        return of_length(read, self.last.attention[place].sizes[1])

    def keys(self, place: str) -> tuple[Token, ...]:
        """The tokens looked at."""
        own = self._targets(place) and self.last.attention[place].kind != "cross"
        read = self.last.target_tokens if own else self.last.tokens
        return of_length(read, self.last.attention[place].sizes[2])

    def _targets(self, place: str) -> bool:
        return bool(self.last.target_tokens) and self.last.attention[place].stack == "decoder"


@dataclass(frozen=True, eq=False)
class WeightMovement:
    """How far each part has moved: the Euclidean norm of the change of its weights and biases, divided by
    their norm at the start. A sub-layer counts with the norm before it."""

    parts: tuple[str, ...]  # "embedding", "decoder.0.self", …
    since_start: Array  # (checkpoint, part)
    since_last: Array  # (checkpoint, part): since the checkpoint before


class Archive:
    """Reads each checkpoint and each text once, and keeps what was used most recently.

    turn: held around each pass, so that it shares the cores with the app's other passes.
    """

    def __init__(
        self,
        *,
        model_bytes: int = 64 * MEGABYTE,
        trace_bytes: int = 64 * MEGABYTE,
        turn: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self._models: Cache[tuple[str, int], Model] = LRUCache(
            model_bytes,
            getsizeof=lambda model: sum(w.nbytes for w in model.module.state_dict().values()),
        )
        self._traces: Cache[tuple[str, int, str], CheckpointTrace] = LRUCache(
            trace_bytes, getsizeof=lambda trace: trace.nbytes
        )
        self._movements: Cache[tuple[str, tuple[int, ...]], WeightMovement] = LRUCache(64)
        self._guard = threading.Lock()
        self._turn = turn

    @cachedmethod(
        attrgetter("_models"), lambda self, training_run, step: (training_run.key, step), _LOCK
    )
    def model(self, training_run: TrainingRun, step: int) -> Model:
        """The model of a training run at one of its checkpoints."""
        return training_run.model(step)

    def traces(self, training_run: TrainingRun, text: str) -> CheckpointTraces:
        """A text read at every checkpoint: its first 128 tokens, or as many as the model can read.

        The decoder of an encoder–decoder reads the last checkpoint's own translation. Raises ValueError,
        with a sentence for the page, for a text that cannot be read.
        """
        last = self.model(training_run, training_run.steps[-1])
        count = len(last.tokens(text))
        read = text
        if count > READ_AT_MOST:
            read = last.tokenizer.beginning(text, READ_AT_MOST)
        read = last.truncate(read)
        end = self._trace(training_run, training_run.steps[-1], read, None)
        output = tuple(token.id for token in end.target_tokens[1:]) if end.target_tokens else None
        checkpoints = [
            self._trace(training_run, step, read, output) for step in training_run.steps[:-1]
        ]
        return CheckpointTraces(
            read, training_run.steps, (*checkpoints, end), count - len(end.tokens)
        )

    @cachedmethod(
        attrgetter("_traces"),
        lambda self, training_run, step, text, output: (training_run.key, step, text),
        _LOCK,
    )
    def _trace(
        self, training_run: TrainingRun, step: int, text: str, output: tuple[int, ...] | None
    ) -> CheckpointTrace:
        """output: ids that the decoder reads; None: the model's own output, or a model without a source."""
        model = self.model(training_run, step)
        target = None if output is None else ""
        with self._turn():
            trace = model.trace(text, target, continued=output or ())
        attention = {one.name: one for one in trace.attention}
        return CheckpointTrace(trace.tokens, trace.target_tokens, attention, trace.check())

    @cachedmethod(
        attrgetter("_movements"),
        lambda self, training_run: (training_run.key, training_run.steps),
        _LOCK,
    )
    def movement(self, training_run: TrainingRun) -> WeightMovement:
        """How far each part of the model had moved at each checkpoint."""
        first = before = _vectors(self.model(training_run, training_run.steps[0]))
        parts, rows = tuple(first), []
        for step in training_run.steps:  # one after another, so that few models are in memory
            now = _vectors(self.model(training_run, step))
            rows.append([[float((now[part] - old[part]).norm() / first[part].norm()) for part in parts]
                         for old in (first, before)])  # fmt: skip
            before = now
        shares = np.array(rows, np.float32)  # (checkpoint, since what, part)
        return WeightMovement(parts, shares[:, 0], shares[:, 1])


def part_of(name: str) -> str:
    """The part of a model that a weight belongs to: an embedding table, a sub-layer with its norm, or the
    final norm."""
    stack, *rest = name.split(".")
    if rest[0] != "blocks":
        return f"{stack}.{rest[0]}"
    kind = rest[2].removesuffix("_norm").removesuffix("_attention")
    return Place(cast(Stack, stack), int(rest[1]), cast(Kind, kind)).name


def _vectors(model: Model) -> dict[str, Tensor]:
    """Part -> all its weights in one row."""
    rows: dict[str, list[Tensor]] = {}
    for name, weight in model.module.state_dict().items():
        rows.setdefault(part_of(name), []).append(weight.detach().flatten().cpu())
    return {part: torch.cat(row) for part, row in rows.items()}
