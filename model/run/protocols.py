"""What `Model` and the pages use of a module: our own transformer, or one of the hub."""

from collections.abc import Iterator, Sequence
from typing import Protocol, Self

import torch
from torch import Tensor, nn

from model.nn.config import Reasons, TransformerConfig
from model.nn.key_value_cache import KEEPS_ALL, Eviction, KeyValueCache
from model.nn.places import Place
from model.trace.records import Attention


class AttentionLayer(Protocol):
    @property
    def place(self) -> Place: ...

    @property
    def heads(self) -> int: ...

    @property
    def window(self) -> int | None:
        """How many keys the model's own sliding window lets a query read; None without one."""
        ...

    @property
    def output(self) -> nn.Linear:
        """W_O with its bias."""
        ...


class Tables(Protocol):
    """What is looked up before the first layer."""

    @property
    def tokens(self) -> nn.Embedding: ...

    @property
    def positions(self) -> nn.Embedding | None:
        """The learned table, row 0 for the first position; None without one."""
        ...

    def angles(self, length: int, device: torch.device) -> Tensor | None:
        """(T, pairs) rotary angles under the current intervention; None if not rotary."""
        ...


class Runnable(Protocol):
    """A transformer of any of the three shapes; the current recorder records and changes it."""

    @property
    def config(self) -> TransformerConfig: ...

    @property
    def unproven(self) -> Reasons:
        """Parts that could not be proven at load, and why; our own layers are proven by tests."""
        ...

    @property
    def unused(self) -> tuple[str, ...]:
        """Tensors of the model's files that the library leaves out, by name."""
        ...

    @property
    def logit_factor(self) -> float:
        """What the output matrix times the last state is multiplied by (Cohere); 1 as a rule."""
        ...

    @property
    def embedding(self) -> Tables: ...

    @property
    def rereads(self) -> bool:
        """Whether its decoder reads the text itself unless it is given something else (BART as a
        classifier)."""
        ...

    @property
    def rows_may_grow(self) -> bool:
        """Whether one row of a pass may become many before any of its layers. Not where the library's code
        makes something for the number of texts before them (BLOOM's slopes)."""
        ...

    def bias_table(self, place: Place) -> nn.Embedding | None:
        """The numbers that are added to a sub-layer's scores, by bucket and head; None without buckets."""
        ...

    def bias_terms(self, record: Attention) -> dict[str, Tensor]:
        """The terms of a sub-layer's biases, (H, T, T) each; none where there is only one."""
        ...

    @property
    def output(self) -> nn.Linear | None:
        """The output matrix; None where it is the token table, or where there is none."""
        ...

    @property
    def output_matrix(self) -> Tensor | None:
        """(V, C), where logits are the normed states times it and nothing else; else None."""
        ...

    def __call__(
        self, ids: Tensor, target: Tensor | None = None, *, padding: Tensor | None = None
    ) -> Tensor:
        """ids (B, S), target (B, T) to logits (B, T, V), or to an encoder's states (B, S, C). padding (B, S):
        True = real token, for batches."""
        ...

    def unembed(self, stream: Tensor) -> Tensor: ...

    def new_cache(self, eviction: Eviction = KEEPS_ALL) -> KeyValueCache:
        """An empty cache for a text that the decoder writes. A pass whose recorder carries it is fed the new
        tokens only. Raises ValueError, with a sentence, for a model that keeps something else."""
        ...

    def attentions(self) -> Sequence[AttentionLayer]: ...

    def named_weights(self) -> dict[str, Tensor]:
        """Every weight that a pass uses, under the names of our own transformer. Raises ValueError, with a
        sentence, for a layout that has no such names."""
        ...

    def extra_parameters(self) -> dict[str, int]:
        """Parameters by part that do not follow from the config."""
        ...

    def w_out(self, name: str) -> nn.Linear:
        """The second map of the feed-forward of this name."""
        ...

    def greedy(
        self,
        ids: Tensor,
        *,
        start: int | None,
        end: int | None,
        limit: int,
        first: int | None = None,
    ) -> list[int]:
        """Greedy decoding. first: what the decoder of two stacks writes first; None: what it finds best."""
        ...

    def parameters(self) -> Iterator[nn.Parameter]: ...

    def state_dict(self) -> dict[str, Tensor]: ...

    def to(self, device: torch.device) -> Self: ...

    def eval(self) -> Self: ...

    def requires_grad_(self, requires_grad: bool = True) -> Self: ...
