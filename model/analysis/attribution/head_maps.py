"""How a head's queries, keys and values come of what its sub-layer reads, as a linear map for each token.

Libraries name and lay out their maps in many ways, so which map it is is told by its numbers: of all beside
W_O the one that gives the recorded vectors again, and none where none does.
Axes: T tokens, C d_model, D width of a head, F features of a map.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import nn

from model.analysis.attribution.modules import (
    is_map,
    matrix_and_bias,
    parts_around,
    path_of,
    weight_and_bias,
    whole,
    wide,
)
from model.analysis.attribution.stream_parts import Positions
from model.analysis.stream.stream import sub_layers
from model.nn.config import Stack
from model.nn.places import Place
from model.nn.positions import RotaryPairs
from model.system.remote import asked
from model.trace.arrays import Array, Wide
from model.trace.records import Attention, NormRecord
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model

Side = Literal["query", "key", "value"]
_AT: dict[Side, int] = {"query": 0, "key": 1, "value": 2}  # among the recorded vectors
CLOSE = 1e-4  # of the largest number: what rounding in single precision explains


@dataclass(frozen=True, eq=False)
class Rotation:
    """Rotary positions: pairs of dimensions turned by angles (T, pairs) (Su et al. 2021)."""

    angles: Wide
    pairs: RotaryPairs

    def of(self, vectors: Wide, tokens: Positions) -> Wide:
        """(…, len(tokens), D): each vector turned by the angles of its token."""
        angles = self.angles[tokens]
        cosine, sine = np.cos(angles), np.sin(angles)
        width = 2 * angles.shape[-1]
        halves = self.pairs == "halves"
        first = vectors[..., : width // 2] if halves else vectors[..., :width:2]
        second = vectors[..., width // 2 : width] if halves else vectors[..., 1:width:2]
        both = [first * cosine - second * sine, second * cosine + first * sine]
        turned = (
            np.concatenate(both, -1)
            if halves
            else np.stack(both, -1).reshape(*first.shape[:-1], width)
        )
        return np.concatenate([turned, vectors[..., width:]], -1)


@dataclass(frozen=True, eq=False)
class HeadMap:
    """x to turn(factor · γ · (matrix · x + bias) + β): the vectors of one head at each token."""

    matrix: Wide  # (D, C)
    bias: Wide  # (D,)
    turn: Rotation | None = None
    gamma: Wide | float = 1.0  # (D,): of a norm of the queries or keys
    beta: Wide | float = 0.0
    factor: Wide | float = 1.0  # (T, 1): 1/deviation in that norm

    def linear(self, mapped: Wide, tokens: Positions) -> Wide:
        """(len(tokens), D): what follows the matrix, without what biases add."""
        factor = self.factor if isinstance(self.factor, float) else self.factor[tokens]
        return self._turned(mapped * self.gamma * factor, tokens)

    def constant(self, tokens: Positions) -> Wide:
        """(len(tokens), D): what biases add."""
        rows = np.ones((len(tokens), 1))
        return self.linear(rows * self.bias, tokens) + self._turned(
            rows * (self.beta + np.zeros(len(self.bias))), tokens
        )

    def _turned(self, vectors: Wide, tokens: Positions) -> Wide:
        return vectors if self.turn is None else self.turn.of(vectors, tokens)


@asked
def head_map(model: "Model", trace: Trace, attention: Attention, head: int, side: Side) -> HeadMap:
    """The map of one head's queries, keys or values.

    Args:
        trace, attention: a run of the model, and the sub-layer of it.
        head: its number among the heads of queries, which may share keys and values.

    Raises ValueError where no map of the model gives the recorded vectors again.
    """
    vectors = attention.vectors[_AT[side]]
    recorded = vectors[head * len(vectors) // attention.heads].astype(np.float64)
    read = read_by(model, trace, attention, side).astype(np.float64)
    compared = side != "value"  # values are neither turned nor normed
    turn = _turn(model, attention, len(recorded)) if compared else None
    # The maps and norms of an attention, without W_O.
    root = whole(model)
    path = path_of(root, model.layer(attention.name).output.weight)
    parts = [part for part in parts_around(root, path) if part is not root.get_submodule(path)]
    norms = list(_norms(parts, attention)) if compared else []
    near = CLOSE * max(float(np.abs(recorded).max()), 1e-6)
    for matrix, bias in _blocks(parts, attention, head, side):
        plain = HeadMap(matrix, bias, turn)
        maps = [_normed(plain, norm, read, recorded) for norm in norms] or [plain]
        gap, nearest = min(
            ((_gap(one, read, recorded), one) for one in maps), key=lambda one: one[0]
        )
        if gap <= near:
            return nearest
    raise ValueError(
        f"The {side} vectors of {attention.name} cannot be split into parts: no map of "
        f"{model.name} reproduces the recorded ones."
    )


def stack_of(attention: Attention, side: Side) -> tuple[Stack, str | None]:
    """The stack that queries, keys or values are made of, and the sub-layer before which it is read; None: at
    its end, where cross-attention reads the encoder."""
    if side != "query" and attention.kind == "cross":
        return "encoder", None
    return attention.stack, attention.name


@asked
def read_by(model: "Model", trace: Trace, attention: Attention, side: Side) -> Array:
    """(T, C): what the map to queries, keys or values reads.

    Args:
        trace, attention: a run of the model, and the sub-layer of it.
        side: in cross-attention keys and values are read of the encoder.
    """
    where = where_read(model, trace, attention, side)
    if isinstance(where, NormRecord):
        return where.output
    stack, state = where
    return trace.residual[stack][state]


@asked
def where_read(
    model: "Model", trace: Trace, attention: Attention, side: Side
) -> NormRecord | tuple[Stack, int]:
    """The norm that the map to queries, keys or values reads, or else the stack and number of a state.

    Args:
        trace, attention: a run of the model, and the sub-layer of it.
        side: in cross-attention keys and values are read of the encoder.
    """
    stack, before = stack_of(attention, side)
    norms = {norm.name: norm for norm in trace.norms}
    place = Place(stack, None, "final") if before is None else Place.named(before)
    name = place.norm
    if name in norms and (before is None or not model.config.norms_sum):
        return norms[name]
    if before is None:
        return stack, len(trace.residual[stack]) - 1
    return stack, sub_layers(trace, stack).index(before)


def _turn(model: "Model", attention: Attention, length: int) -> Rotation | None:
    if not attention.projection.turned:
        return None
    pairs = model.config.rotary_pairs
    angles = model.module.embedding.angles(length, torch.device("cpu"))
    if angles is None or pairs == "other":
        raise ValueError(
            f"{model.name} rotates its queries in a way that this analysis does not cover."
        )
    return Rotation(angles.numpy().astype(np.float64), pairs)


def _blocks(
    parts: list[nn.Module], attention: Attention, head: int, side: Side
) -> Iterator[tuple[Wide, Wide]]:
    """Every (D, C) block of rows of a map that may be the head's, with its bias (D,)."""
    width = attention.vectors[_AT[side]].shape[-1]
    for part in filter(is_map, parts):
        matrix, bias = matrix_and_bias(part)
        for start in _starts(len(matrix) // width, attention, head, side):
            rows = slice(start * width, (start + 1) * width)
            shift = torch.zeros(width) if bias is None else bias[rows]
            yield wide(matrix[rows]), wide(shift)


def _starts(blocks: int, attention: Attention, head: int, side: Side) -> Iterator[int]:
    """Where the head's rows may start in a map of so many blocks of D rows."""
    heads, groups = attention.heads, attention.vectors[1].shape[0]
    shared = heads // groups  # heads that read the same keys
    number = head if side == "query" else head // shared
    if blocks == (heads if side == "query" else groups):
        yield number
    if blocks == heads + 2 * groups:  # queries, keys and values in one map
        yield {"query": 0, "key": heads, "value": heads + groups}[side] + number
        inside = {"query": head % shared, "key": shared, "value": shared + 1}[side]
        yield head // shared * (shared + 2) + inside  # group by group, as in GPT-NeoX
        yield from range(blocks)  # in another order, as in CodeGen


def _norms(parts: list[nn.Module], attention: Attention) -> Iterator[tuple[Wide, Wide | None]]:
    """γ and β (D,) of the norms that may be those of queries or keys. Some keep γ - 1."""
    width = attention.vectors[0].shape[-1]
    for part in parts:
        weight, bias = weight_and_bias(part)
        if weight.shape == (width,) and attention.projection.normed:
            for offset in (0.0, 1.0):
                yield wide(weight) + offset, None if bias is None else wide(bias)


def _normed(plain: HeadMap, norm: tuple[Wide, Wide | None], read: Wide, recorded: Wide) -> HeadMap:
    """A map with a norm after it: a layer norm where it has a β, else an RMS norm. What it divides by
    shows in the recorded vectors' length."""
    gamma, beta = norm
    if beta is not None:
        plain = replace(
            plain, matrix=plain.matrix - plain.matrix.mean(0), bias=plain.bias - plain.bias.mean()
        )
    scaled = replace(plain, gamma=gamma, beta=0.0 if beta is None else beta)
    tokens = np.arange(len(read))
    direction = scaled.linear(read @ scaled.matrix.T + scaled.bias, tokens)
    rest = recorded - replace(scaled, bias=np.zeros_like(scaled.bias)).constant(tokens)
    lengths = np.square(direction).sum(-1, keepdims=True)
    factor = (direction * rest).sum(-1, keepdims=True) / np.maximum(lengths, np.finfo(float).tiny)
    return replace(scaled, factor=factor)


def _gap(made_by: HeadMap, read: Wide, recorded: Wide) -> float:
    """Largest difference between the vectors that a map makes and the recorded ones."""
    tokens = np.arange(len(read))
    made = made_by.linear(read @ made_by.matrix.T, tokens) + made_by.constant(tokens)
    return float(np.abs(made - recorded).max())
