"""The parts of a Hugging Face model that are shown, each with its name and its module.

Axes: B batch, T tokens, C width of the model, H heads, D width of a head.
"""

from dataclasses import dataclass

from torch import nn

from model.hub.feed_forward import FeedForwardParts
from model.nn.config import NormKind, NormPlace, Reasons, Shape, Stack
from model.nn.places import Place


@dataclass(frozen=True, eq=False)
class NormPart:
    """A norm: x to (x - mean)/deviation · gamma + beta."""

    name: str  # decoder.3.self.norm
    module: nn.Module
    kind: NormKind | None  # None: neither of ours
    epsilon: float
    offset: float  # added to the module's weight to make gamma: 1 where the module keeps gamma - 1


@dataclass(frozen=True, eq=False)
class AttentionPart:
    """An attention sub-layer: the module that calls the attention function, and W_O."""

    place: Place
    module: nn.Module
    output: nn.Module | None  # (B, T, H·D) to (B, T, C); None where it is not known
    heads: int
    key_heads: int
    head_width: int
    norm: NormPart | None  # what it reads, or its sum with the stream, goes through it
    after: NormPart | None = None  # what it writes goes through it, before the sum
    window: int | None = None  # keys that a query reads at most


@dataclass(frozen=True, eq=False)
class FeedForwardPart:
    """A feed-forward sub-layer."""

    name: str  # decoder.3.feed_forward
    parts: FeedForwardParts | None  # None where its neurons are not told, as those of experts
    entry: nn.Module  # the first of its parts to read the stream
    whole: nn.Module | None = None  # what it writes, where its neurons are not told
    router: nn.Module | None = None  # chooses the experts of each token
    norm: NormPart | None = None
    after: NormPart | None = None


@dataclass(frozen=True, eq=False)
class BlockPart:
    """One layer: its sub-layers in order."""

    module: nn.Module
    attentions: tuple[AttentionPart, ...]
    feed_forward: FeedForwardPart | None
    turn: int = 0  # which of the runs of its module in a pass this is
    turns: int = 1


@dataclass(frozen=True, eq=False)
class StackPart:
    """One stack: its embeddings, its layers, and the norms before and after them."""

    stack: Stack
    tokens: nn.Module | None  # None where what is added up before the first layer is not known
    token_factor: float  # what the rows of the token table are multiplied by
    positions: nn.Module | None
    first_position: int  # the row of position 0 in a table of positions
    segments: nn.Module | None
    embedding_norm: NormPart | None
    starts_normed: bool  # whether the first layer reads what that norm gives, as it is
    blocks: tuple[BlockPart, ...]
    final_norm: NormPart | None
    norm_place: NormPlace | None  # None where the stream is not known
    parallel: bool  # attention and feed-forward read the same state, and both are added


@dataclass(frozen=True, eq=False)
class Anatomy:
    """The parts of a model in order of execution, and why others are not known."""

    shape: Shape
    width: int
    stacks: tuple[StackPart, ...]
    rotary: tuple[nn.Module, ...]
    unproven: Reasons

    def attentions(self) -> tuple[AttentionPart, ...]:
        return tuple(
            part for stack in self.stacks for block in stack.blocks for part in block.attentions
        )
