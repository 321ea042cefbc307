"""Positions of every kind as tables, and what is added to scores by distance."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from model.analysis.tokens.embeddings import cosines
from model.nn.biases import distance_buckets
from model.nn.positions import ROTARY, SINUSOIDAL, Alibi, BiasLaw, Buckets, PositionLaw
from model.system.remote import asked
from model.trace.arrays import Array, read_only
from model.trace.collect import numbers_of
from model.trace.records import Attention
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model


def sinusoidal(length: int, width: int) -> Array:
    """(position, d_model): sine in the even columns, cosine of the same angle in the odd ones.

    Source: Vaswani et al. 2017, section 3.5.
    """
    return read_only(SINUSOIDAL.rows(length, width).astype(np.float32))


def rotary(length: int, width: int, base: float = 10_000.0) -> Array:
    """(position, d_k/2): the angle in radians by which each pair of a head is turned.

    Source: Su et al. 2021, "RoFormer", section 3.2.
    """
    return read_only(ROTARY.rows(length, width, base).astype(np.float32))


@asked
def learned(model: "Model") -> Array | None:
    """(context, d_model): the learned position table of a model; None where it has none."""
    table = model.module.embedding.positions
    return None if table is None else numbers_of(table.weight)


def similarity(table: Array) -> Array:
    """(position, position): the cosine of the angle between every two rows of a table; 0 where a
    row is zero. Computed in float64."""
    rows = table.astype(np.float64)
    return cosines(rows, rows)


def rotary_similarity(angles: Array) -> Array:
    """(position, position): the cosine of the difference of two positions' angles, averaged over
    the pairs: the score of equal pairs of length 1, turned by their positions."""
    turned = angles.astype(np.float64)
    sine, cosine = np.sin(turned), np.cos(turned)
    return read_only((cosine @ cosine.T + sine @ sine.T) / angles.shape[1])


FEWEST = 32  # distances that are shown, also of a short text


@dataclass(frozen=True, eq=False)
class DistanceBias:
    """Biases of one attention sub-layer that depend on the distance of two tokens alone.

    A distance is the key's position minus the query's. ALiBi's are relative to the token itself: what is
    added to a whole row changes no weight.
    """

    law: BiasLaw
    attention: Attention
    distances: NDArray[np.int64]  # (distance,)
    values: Array  # (head, distance)
    check: float  # largest difference from what was recorded, over all pairs that may look
    slopes: Array | None = None  # (head,): of ALiBi
    buckets: NDArray[np.int64] | None = None  # (distance,): of T5

    def at(self, distance: int) -> int:
        """The column of a distance."""
        return int(distance - self.distances[0])


def biased(trace: Trace) -> tuple[Attention, ...]:
    """The attention sub-layers that add biases to their scores."""
    return tuple(attention for attention in trace.attention if attention.bias is not None)


@asked
def distance_bias(model: "Model", attention: Attention) -> DistanceBias | None:
    """The biases of a sub-layer by distance; None where they depend on more than the distance."""
    law = model.config.position_law
    by_distance = _BY_DISTANCE.get(type(law))
    return None if by_distance is None else by_distance(model, attention)


def _alibi(model: "Model", attention: Attention) -> DistanceBias:
    """−slope · steps back, with the slopes that the recorded numbers have."""
    length = attention.key.shape[1]
    last = _relative(attention)[:, -1]  # (head, key): of the last token
    slopes = -last[:, 0] / max(length - 1, 1)
    if length == 1:
        slopes = np.zeros(attention.heads, np.float32)
    distances = np.arange(-max(length - 1, FEWEST), 1)
    return _checked(
        model, attention, distances, slopes[:, None] * distances, slopes=read_only(slopes)
    )


def _buckets(model: "Model", attention: Attention) -> DistanceBias | None:
    """A row of the table for each bucket."""
    table = model.module.bias_table(attention.place)
    if table is None:
        return None
    config, both = model.config, attention.stack == "encoder"
    reach = max(attention.key.shape[1] - 1, config.farthest + config.farthest // 8)
    distances = np.arange(-reach, reach * both + 1)
    where = distance_buckets(
        torch.from_numpy(distances), config.buckets, config.farthest, two_ways=both
    ).numpy()
    values = numbers_of(table.weight).T[:, where]
    return _checked(model, attention, distances, values, buckets=where)


def _checked(
    model: "Model",
    attention: Attention,
    distances: NDArray[np.int64],
    values: Array,
    *,
    slopes: Array | None = None,
    buckets: NDArray[np.int64] | None = None,
) -> DistanceBias:
    """With the largest difference from the recorded biases, of pairs whose distance is listed."""
    law = model.config.position_law
    if not isinstance(law, BiasLaw):
        raise ValueError(f"{model.name} adds no biases to its scores.")
    recorded = _relative(attention) if law.relative else _whole(attention)
    queries, keys = recorded.shape[1:]
    apart = np.arange(keys) - np.arange(queries)[:, None]
    listed = apart <= distances[-1]
    columns = (apart - distances[0])[listed]
    check = max(
        float(np.abs(own[listed] - made[columns]).max())
        for own, made in zip(recorded, values, strict=True)
    )
    return DistanceBias(law, attention, distances, read_only(values), check, slopes, buckets)


_BY_DISTANCE: Mapping[type[PositionLaw], Callable[["Model", Attention], DistanceBias | None]] = {
    Alibi: _alibi,
    Buckets: _buckets,
}


def _whole(attention: Attention) -> Array:
    """(head, query, key), without a copy."""
    if attention.bias is None:
        raise ValueError(f"{attention.name} adds no biases to its scores.")
    shape = attention.sizes
    return np.broadcast_to(attention.bias, shape)


def _relative(attention: Attention) -> Array:
    """(head, query, key): minus what each token adds to its score with itself."""
    whole = _whole(attention)
    own = np.diagonal(whole, axis1=1, axis2=2)
    return np.asarray(whole - own[:, :, None])


@dataclass(frozen=True, eq=False)
class BiasTerms:
    """The terms that make up the bias of one head: (query, key) each, by their names."""

    terms: Mapping[str, Array]
    recorded: Array

    @property
    def check(self) -> float:
        """Largest |sum of the terms - recorded|."""
        return float(np.abs(sum(self.terms.values()) - self.recorded).max())


@asked
def bias_terms(model: "Model", attention: Attention, head: int) -> BiasTerms | None:
    """The terms of a head's bias, where a model has several (DeBERTa); None for others."""
    found = model.module.bias_terms(attention)
    if not found:
        return None
    terms = {name: numbers_of(term[head]) for name, term in found.items()}
    return BiasTerms(terms, read_only(_whole(attention)[head]))
