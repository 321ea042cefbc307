"""What a pass leaves behind while it runs.

Layers write into the recorder of the current context and do nothing without one. A context variable
keeps threads and sessions apart: hooks on a shared module would catch everybody's tensors.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

import torch.nn.functional as F
from torch import Tensor

from model.nn.config import Activation, NormKind, Stack
from model.nn.intervention import Intervention
from model.system import deadline

Level = Literal["nothing", "attention", "full"]


@dataclass(frozen=True)
class Place:
    """Where an attention sub-layer stands. Its name is what readers grep: `decoder.3.self`."""

    stack: Stack
    layer: int
    kind: Literal["self", "causal", "cross"]

    @property
    def name(self) -> str:
        return f"{self.stack}.{self.layer}.{'cross' if self.kind == 'cross' else 'self'}"


@dataclass(frozen=True)
class AttentionTensors:
    """One attention sub-layer as it ran: (B, H, T, D) vectors, (T, T) mask, explicit steps if
    any."""

    place: Place
    query: Tensor
    key: Tensor
    value: Tensor
    output: Tensor
    scale: float
    mask: Tensor | None
    causal: bool  # the look-ahead mask, left to the kernel
    fill: float
    steps: dict[str, Tensor]  # "scores", "masked", "weights", "dropped": explicit passes only


@dataclass(frozen=True)
class NormTensors:
    """One norm as it ran: (B, T, width) input, (B, T, 1) statistics."""

    name: str
    kind: NormKind
    input: Tensor
    mean: Tensor
    inverse_deviation: Tensor
    epsilon: float
    gamma: Tensor
    beta: Tensor | None
    output: Tensor | None  # kept at level "full"


@dataclass(frozen=True)
class FeedForwardTensors:
    """The hidden layer of one feed-forward as it ran: (B, T, M)."""

    name: str
    before: Tensor  # the activation
    hidden: Tensor | None  # after it; None where the activation alone gives it again
    activation: Activation | None = None


@dataclass(frozen=True)
class TableRows:
    """A summand of the embedding: rows of a table (V, C), times a factor."""

    table: Tensor
    ids: Tensor | None = None  # (B, T): which rows; None: all of them
    factor: float = 1.0

    def made(self) -> Tensor:
        """(B, T, C); (T, C) where every text has the same."""
        rows = self.table if self.ids is None else F.embedding(self.ids, self.table)
        return rows if self.factor == 1.0 else rows * self.factor


@dataclass
class Recorder:
    """Collects the tensors of one pass, and carries the change that the pass is run with.

    `kept_heads` ablates heads in single rows of a batch, where an intervention does so in all rows.
    """

    intervention: Intervention = Intervention()
    level: Level = "nothing"
    explicit: bool = False
    source: Stack = "decoder"
    late: bool = False  # what the model's own tables give again waits: logits, embedding
    kept_heads: Mapping[str, Tensor] = field(default_factory=dict)  # name -> (B, H): 0 ablates
    attention: list[AttentionTensors] = field(default_factory=list)
    norms: list[NormTensors] = field(default_factory=list)
    streams: dict[Stack, list[Tensor]] = field(default_factory=dict)
    feed_forward: list[FeedForwardTensors] = field(default_factory=list)
    summands: dict[Stack, dict[str, Tensor]] = field(default_factory=dict)
    tables: dict[Stack, dict[str, TableRows]] = field(default_factory=dict)  # of a late embedding
    unfinished: dict[str, Tensor] = field(default_factory=dict)  # of a sub-layer still running

    @property
    def keeps(self) -> bool:
        return self.level != "nothing"

    @property
    def keeps_all(self) -> bool:
        return self.level == "full"

    def stream(self, stack: Stack, state: Tensor) -> Tensor:
        """Notes one state of the residual stream and hands it on; a pass over its limits ends here."""
        deadline.look()
        if self.keeps:
            self.streams.setdefault(stack, []).append(state)
        return state


_SILENT = Recorder()
_current: ContextVar[Recorder | None] = ContextVar("recorder", default=None)


def current() -> Recorder:
    """The recorder of this context; one that keeps and changes nothing outside `recording`."""
    return _current.get() or _SILENT


@contextmanager
def recording(recorder: Recorder) -> Iterator[Recorder]:
    """Runs the body with this recorder, in this thread or task only."""
    token = _current.set(recorder)
    try:
        yield recorder
    finally:
        _current.reset(token)
