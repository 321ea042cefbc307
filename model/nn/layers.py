"""The parts of a transformer besides attention: norms, positions, feed-forward, blocks.

Axes: B batch, T tokens, C width of the model, M width of the feed-forward's hidden layer.
"""

import math
from collections.abc import Callable
from functools import reduce

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.nn.activations import ACTIVATION_LAWS, GATED, Activation, ActivationLaw
from model.nn.attention import MultiHeadAttention
from model.nn.config import Stack, TransformerConfig
from model.nn.norms import NORMS
from model.nn.places import Place
from model.nn.recorder import FeedForwardTensors, NormTensors, TableRows, current


class Norm(nn.Module):
    """A norm of one of the kinds in `NORMS` over the last axis."""

    def __init__(self, config: TransformerConfig, name: str) -> None:
        super().__init__()
        self.name = name
        self.kind = config.norm
        self.epsilon = config.epsilon
        self.gamma = nn.Parameter(torch.ones(config.d_model))
        self.beta = nn.Parameter(torch.zeros(config.d_model)) if config.norm_law.shifts else None

    def forward(self, x: Tensor) -> Tensor:
        law = NORMS[self.kind]
        normed, mean, inverse = law.apply(x, self.gamma, self.beta, self.epsilon)
        recorder = current()
        if recorder.keeps:
            kept = normed if recorder.keeps_all else None
            statistics = mean, inverse, self.epsilon
            recorder.norms.append(
                NormTensors(self.name, self.kind, x, *statistics, self.gamma, self.beta, kept)
            )
        return normed


def sinusoids(length: int, width: int) -> Tensor:
    """(length, width): sin in even columns, cos in odd ones, of pos / 10000^(2i/width).

    Source: Vaswani et al. 2017, 3.5. Computed in float64, returned as float32.
    """
    angles = _angles(length, width, 10_000.0)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1).float()


def rotary_angles(length: int, width: int, base: float = 10_000.0) -> Tensor:
    """(length, width/2): the angle by which each pair of a head's query and key is turned."""
    return _angles(length, width, base).float()


def _angles(length: int, width: int, base: float) -> Tensor:
    pairs = torch.arange(0, width, 2, dtype=torch.float64)
    return torch.arange(length, dtype=torch.float64)[:, None] / base ** (pairs / width)


def segments_of(ids: Tensor, separator: int) -> Tensor:
    """(B, T): 1 for the tokens behind the first separator up to the last one, 0 for all others; so for every
    token of a text whose only separator ends it. ids (B, T). Source: Devlin et al. 2018, "BERT"."""
    ends = ((ids == separator) & (separator > 0)).long()
    before = ends.cumsum(-1) - ends
    return ((before > 0) & (before < ends.sum(-1, keepdim=True))).long()


class _Table(nn.Embedding):
    """Draws no first rows on `meta`: for a normal number there PyTorch imports its compiler, in 1.4 s."""

    def reset_parameters(self) -> None:
        if not self.weight.is_meta:
            super().reset_parameters()


class Embedding(nn.Module):
    """Token vectors plus positions (plus segment), shared by both stacks of an encoder–decoder."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.tokens = _Table(config.d_vocab, config.d_model)
        learned = config.has_position_table
        self.positions = _Table(config.n_ctx, config.d_model) if learned else None
        self.segments = _Table(config.segments, config.d_model) if config.segments else None
        place = Place(config.source, None, "embedding")
        self.norm = Norm(config, place.norm) if config.embedding_norm else None
        self.dropout = nn.Dropout(config.dropout)
        for table in (self.tokens, self.positions):
            if table is not None and not table.weight.is_meta:
                nn.init.normal_(table.weight, std=1 / math.sqrt(config.d_model))

    def forward(self, ids: Tensor, stack: Stack, first: int = 0) -> Tensor:
        """What the first layer of a stack reads, (B, T, C).

        Args:
            ids: (B, T).
            stack: under whose name the recorder keeps the summands.
            first: the position of the first of the ids.
        """
        tables = self.tables(ids, first)
        summands = {name: rows.made() for name, rows in tables.items()}
        x = reduce(torch.add, summands.values())
        recorder = current()
        if recorder.keeps and recorder.deferred:
            recorder.tables[stack] = tables
        elif recorder.keeps:
            recorder.summands[stack] = summands
        return self.dropout(x if self.norm is None else self.norm(x))

    def tables(self, ids: Tensor, first: int = 0) -> dict[str, TableRows]:
        """The summands of the embedding of ids (B, T), by name."""
        factor = math.sqrt(self.config.d_model) if self.config.scaled_embedding else 1.0
        tables = {"tokens": TableRows(self.tokens.weight, ids, factor)}
        positions = self.added(first + ids.shape[-1], ids.device)
        if positions is not None:
            tables["positions"] = TableRows(positions[first:])
        if self.segments is not None:
            which = segments_of(ids, self.config.separator)
            tables["segments"] = TableRows(self.segments.weight, which)
        return tables

    def added(self, length: int, device: torch.device) -> Tensor | None:
        """(T, C) positions to add, zero where an intervention leaves them out; None for a model that
        adds none."""
        if self.positions is not None:
            table = self.positions.weight[:length]
        elif self.config.adds_positions:
            table = sinusoids(length, self.config.d_model).to(device, non_blocking=True)
        else:
            return None
        return table if current().intervention.positions else torch.zeros_like(table)

    def angles(self, length: int, device: torch.device) -> Tensor | None:
        """(T, D/2) rotary angles, zero where an intervention leaves positions out; None for a model
        without them."""
        if not self.config.turns_positions:
            return None
        width, base = self.config.head_width, self.config.rotary_base
        angles = rotary_angles(length, width, base).to(device, non_blocking=True)
        return angles if current().intervention.positions else torch.zeros_like(angles)


def _by_torch(law: ActivationLaw) -> Callable[[Tensor], Tensor]:
    return lambda x: law.compute(F, x)


ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    name: _by_torch(law) for name, law in ACTIVATION_LAWS.items()
}


class FeedForward(nn.Module):
    """C to M, activation, M to C, for each token alone. In SwiGLU and GeGLU (Shazeer 2020) a second
    map is the gate."""

    def __init__(self, config: TransformerConfig, name: str) -> None:
        super().__init__()
        self.name = name
        self.activation_name = config.activation
        self.activation = ACTIVATIONS[config.activation]
        gated = config.activation in GATED
        width, hidden, bias = config.d_model, config.d_mlp, config.hidden_bias
        self.w_in = nn.Linear(width, hidden, bias=bias)
        self.gate = nn.Linear(width, hidden, bias=bias) if gated else None
        self.w_out = nn.Linear(hidden, width, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        recorder = current()
        before = self.w_in(x) if self.gate is None else self.gate(x)  # (B, T, M)
        before = recorder.through("before", self.name, before)
        hidden = self.activation(before)
        if self.gate is not None:
            hidden = hidden * self.w_in(x)
        hidden = recorder.through("hidden", self.name, hidden)
        if recorder.keeps_all:
            kept = None if self.gate is None else hidden
            recorder.feed_forward.append(
                FeedForwardTensors(self.name, before, kept, self.activation_name)
            )
        return self.w_out(hidden)


class Block(nn.Module):
    """Self-attention, cross-attention where there is a source to read, feed-forward.

    Each sub-layer adds to the stream. Pre-norm: x + f(norm(x)), as GPT-2. Post-norm: norm(x +
    f(x)), as the 2017 transformer and BERT.
    """

    def __init__(self, config: TransformerConfig, stack: Stack, layer: int) -> None:
        super().__init__()
        self.stack = stack
        self.pre = config.norms_input
        own = Place(stack, layer, "causal" if stack == "decoder" else "self")
        self.self_attention = MultiHeadAttention(config, own)
        self.self_norm = Norm(config, own.norm)
        self.cross_attention = self.cross_norm = None
        if config.shape == "encoder-decoder" and stack == "decoder":
            cross = Place(stack, layer, "cross")
            self.cross_attention = MultiHeadAttention(config, cross)
            self.cross_norm = Norm(config, cross.norm)
        self.feed_forward = self.feed_forward_norm = None
        if config.d_mlp:
            place = Place(stack, layer, "feed_forward")
            self.feed_forward = FeedForward(config, place.name)
            self.feed_forward_norm = Norm(config, place.norm)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        angles: Tensor | None = None,
        bias: Tensor | None = None,
    ) -> Tensor:
        """The stream after this block, (B, T, C).

        Args:
            x: (B, T, C).
            memory: (B, S, C): the encoder's output, which cross-attention reads; None: there is no source.
            mask: of self-attention, True = may look; None: the look-ahead mask in a decoder, else every key.
            memory_mask: of cross-attention; None: every token of the source.
            angles: (T, D/2), in radians: they rotate queries and keys of self-attention.
            bias: (H, T, S), added to the scores of self-attention.
        """
        own, norm = self.self_attention, self.self_norm
        written = own(self._read(x, norm), mask=mask, angles=angles, bias=bias)
        self._let_go(own, norm, x, mask=mask, angles=angles, bias=bias)
        x = self._sum(x, norm, written)
        cross, norm_of_cross = self.cross_attention, self.cross_norm
        if cross is not None and norm_of_cross is not None:
            written = cross(self._read(x, norm_of_cross), memory, mask=memory_mask)
            self._let_go(cross, norm_of_cross, x, source=memory, mask=memory_mask)
            x = self._sum(x, norm_of_cross, written)
        if self.feed_forward is not None and self.feed_forward_norm is not None:
            written = self.feed_forward(self._read(x, self.feed_forward_norm))
            x = self._sum(x, self.feed_forward_norm, written)
        return x

    def _let_go(
        self, attention: MultiHeadAttention, norm: Norm, x: Tensor, **given: Tensor | None
    ) -> None:
        """Lets go of the vectors of a sub-layer that has just run on x, which can be run again."""
        pre = self.pre  # the block is not held: a trace may hold what runs its attention again
        current().drop_for_rerun(lambda: attention(norm(x) if pre else x, **given), attention, norm)

    def _read(self, x: Tensor, norm: Norm) -> Tensor:
        """What a sub-layer reads of the stream."""
        return norm(x) if self.pre else x

    def _sum(self, x: Tensor, norm: Norm, written: Tensor) -> Tensor:
        """The stream with what a sub-layer wrote."""
        x = x + self.dropout(written)
        return current().stream(self.stack, x if self.pre else norm(x))
