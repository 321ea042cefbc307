"""What `Model` and the pages ask of a module that runs: our own transformer, or one of the hub."""

from collections.abc import Iterator, Sequence
from typing import Protocol, Self

import torch
from torch import Tensor, nn

from model.nn.config import TransformerConfig
from model.nn.recorder import Place


class AttentionLayer(Protocol):
    """One attention sub-layer."""

    @property
    def place(self) -> Place: ...

    @property
    def heads(self) -> int: ...

    @property
    def output(self) -> nn.Linear:
        """W_O with its bias."""
        ...

    def write_of(self, context: Tensor, head: int) -> Tensor:
        """What one head's context (T, D) adds to the stream through its slice of W_O: (T, C)."""
        ...


class Tables(Protocol):
    """What is looked up before the first layer."""

    @property
    def tokens(self) -> nn.Embedding: ...

    @property
    def positions(self) -> nn.Embedding | None:
        """The learned table, row 0 for the first position; None where there is none."""
        ...

    def angles(self, length: int, device: torch.device) -> Tensor | None:
        """(T, pairs) rotary angles of the current context; None if not rotary."""
        ...


class Runnable(Protocol):
    """A transformer of any of the three shapes, recorded and changed by the current context."""

    @property
    def config(self) -> TransformerConfig: ...

    @property
    def embedding(self) -> Tables: ...

    @property
    def output(self) -> nn.Linear | None:
        """The output matrix; None where it is the token table, or where there is none."""
        ...

    @property
    def output_matrix(self) -> Tensor | None:
        """(V, C), where the normed states times it are the logits and nothing follows; else None."""
        ...

    def __call__(self, ids: Tensor, target: Tensor | None = None) -> Tensor:
        """ids (B, S), target (B, T) to logits (B, T, V), or to an encoder's states (B, S, C)."""
        ...

    def unembed(self, stream: Tensor) -> Tensor: ...

    def attentions(self) -> Sequence[AttentionLayer]: ...

    def beyond_sizes(self) -> dict[str, int]:
        """Parameters by part, beside those that follow from the sizes of the config."""
        ...

    def outer_map(self, name: str) -> nn.Linear:
        """The second map of the feed-forward of this name."""
        ...

    def greedy(
        self, ids: Tensor, *, start: int | None, end: int | None, limit: int
    ) -> list[int]: ...

    def parameters(self) -> Iterator[nn.Parameter]: ...

    def state_dict(self) -> dict[str, Tensor]: ...

    def to(self, device: torch.device) -> Self: ...

    def eval(self) -> Self: ...

    def requires_grad_(self, requires_grad: bool = True) -> Self: ...
