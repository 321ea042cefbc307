"""A head as two matrices, read over a vocabulary: W_Q·W_Kᵀ, where it looks, and W_V·W_O, what it writes.

Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits". A norm before the head, or
before the output matrix, is folded into what follows it, and one on what the head writes into W_O: its γ and,
for a layer norm, the subtracted mean.
Axes: V vocabulary, C d_model, D width of a head.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from model.analysis.attribution.head_maps import (
    HeadMap,
    Side,
    head_map,
    read_by,
    stack_of,
    where_read,
)
from model.analysis.attribution.modules import wide
from model.analysis.attribution.stream_parts import checked_head
from model.analysis.stream.stream import embedding_norm
from model.nn.config import Stack
from model.nn.places import Head, Place
from model.system.remote import asked
from model.trace.arrays import Array, Wide
from model.trace.records import Attention, NormRecord, Token
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model


SIDES: tuple[Side, ...] = ("query", "key", "value")
BLOCK = 2**22  # numbers that are worked on at once
MOST_PAIRS = 10**8  # of a vocabulary with itself


class Pair(NamedTuple):
    """An entry of a matrix over the vocabulary."""

    row: int
    column: int
    value: float


class Factors(NamedTuple):
    """A matrix (n, m) of rank D at most, as left · rightᵀ."""

    left: Wide  # (n, D)
    right: Wide  # (m, D)

    @property
    def product(self) -> Wide:
        return self.left @ self.right.T

    def largest(self, count: int) -> list[Pair]:
        """Its largest entries, found block by block, in single precision."""
        left, right = self.left.astype(np.float32), self.right.astype(np.float32)
        found: list[Pair] = []
        rows = max(BLOCK // len(right), 1)
        for start in range(0, len(left), rows):
            block = (left[start : start + rows] @ right.T).ravel()
            least = found[-1].value if len(found) == count else -np.inf
            places = np.flatnonzero(block > least)
            if len(places) > count:
                places = places[np.argpartition(-block[places], count)[:count]]
            found += [
                Pair(start + at // len(right), at % len(right), float(block[at]))
                for at in places.tolist()
            ]
            found = sorted(found, key=lambda pair: -pair.value)[:count]
        return found


@dataclass(frozen=True, eq=False)
class HeadMatrices:
    """The maps of one head with the norm before it folded in. They act on a state divided by its
    deviation."""

    head: Head
    order: int  # of its sub-layer among all
    stack: Stack  # that it writes to
    read: Stack  # of its keys and values
    scale: float
    query: Wide  # (D, C)
    key: Wide  # (D, C)
    value: Wide  # (D, C)
    output: Wide  # (C, D)
    maps: tuple[HeadMap, HeadMap]  # of queries and keys as they are, with biases and positions

    @property
    def turns(self) -> bool:
        """Whether positions turn its queries and keys."""
        return self.maps[0].turn is not None


@asked
def head_matrices(model: "Model", trace: Trace, name: str | int, head: int) -> HeadMatrices:
    """The matrices of one head.

    Args:
        name: of the attention sub-layer, or the number of its layer.

    Raises ValueError for a head that is not there, and where queries or keys are not a linear map of the
    state.
    """
    attention, head = checked_head(model, trace, name, head)
    if attention.projection.normed:
        raise ValueError(
            f"{model.name} norms the queries and keys of each head, so no single matrix gives its scores."
        )
    made = {side: head_map(model, trace, attention, head, side) for side in SIDES}
    query, key, value = (
        fold(_norm_before(model, trace, attention, side), made[side].matrix) for side in SIDES
    )
    output = wide(model.w_o(attention.name, head))
    after = next((norm for norm in trace.norms if norm.name == attention.place.after), None)
    return HeadMatrices(
        head=(attention.name, head),
        order=trace.attention.index(attention),
        stack=attention.stack,
        read=stack_of(attention, "key")[0],
        scale=attention.scale,
        query=query,
        key=key,
        value=value,
        output=fold(after, output.T).T,
        maps=(made["query"], made["key"]),
    )


@asked
def scores_check(model: "Model", trace: Trace, matrices: HeadMatrices) -> float:
    """Largest difference of the recorded scores and those that the two maps make of the recorded states,
    with their biases and positions."""
    name, head = matrices.head
    attention, made = trace.find(name), []
    for side, one in zip(SIDES, matrices.maps, strict=False):
        read = read_by(model, trace, attention, side).astype(np.float64)
        tokens = np.arange(len(read))
        made.append(one.linear(read @ one.matrix.T, tokens) + one.constant(tokens))
    return float(np.abs(made[0] @ made[1].T - attention.scores(head)).max())


@asked
def looking(
    model: "Model", trace: Trace, matrices: HeadMatrices, *, distance: int = 0, whole: bool = False
) -> Factors:
    """(query token, key token): the scaled score of two token vectors alone, without positions, biases and
    whatever layers before add.

    Args:
        matrices: of a head of this trace.
        distance: how many tokens the key stands before the query, where positions turn both.
        whole: the tokens of the whole vocabulary instead of those of the sentence.
    """
    attention = trace.find(matrices.head[0])
    query = _token_vectors(model, trace, attention, "query", whole) @ matrices.query.T
    key = _token_vectors(model, trace, attention, "key", whole) @ matrices.key.T
    if (turn := matrices.maps[0].turn) is not None:
        query = turn.of(query, np.full(len(query), distance))
        key = turn.of(key, np.zeros(len(key), dtype=np.intp))
    return Factors(query * matrices.scale, key)


@asked
def writing(
    model: "Model", trace: Trace, matrices: HeadMatrices, *, whole: bool = False
) -> Factors:
    """(key token, output token): what full weight on a token alone writes towards each logit, before the
    division by the last norm's deviation.

    Args:
        matrices: of a head of this trace.
        whole: the tokens of the whole vocabulary instead of those of the sentence.

    Raises ValueError where no logits are read of what it writes.
    """
    trace.require_prediction()
    if matrices.stack == "encoder":
        raise ValueError(
            f"{matrices.head[0]} writes to the encoder's stream; logits are read from the decoder's."
        )
    attention = trace.find(matrices.head[0])
    norms = {norm.name: norm for norm in trace.norms}
    # (V, C): the rows that make the logits.
    module = model.module
    table = wide((module.embedding.tokens if module.output is None else module.output).weight)
    if not whole:
        table = table[[token.id for token in trace.tokens_of("decoder")]]
    rows = fold(norms.get(Place("decoder", None, "final").norm), table)
    values = _token_vectors(model, trace, attention, "value", whole) @ matrices.value.T
    return Factors(values, rows @ matrices.output)


def copying_score(factors: Factors) -> float:
    """Σλ / Σ|λ| over the eigenvalues λ of W_V·W_O read over the whole vocabulary: 1 where each token raises
    its own logit, −1 where it lowers it. They are those of a D × D matrix."""
    values = np.linalg.eigvals(factors.right.T @ factors.left)
    return float(values.real.sum() / np.abs(values).sum())


def singular_values(matrices: HeadMatrices) -> tuple[Wide, Wide]:
    """(D,) each, the largest first: of W_Q·W_Kᵀ and of W_V·W_O."""
    return (
        _singular(matrices.query, matrices.key),
        _singular(matrices.value, matrices.output.T),
    )


def fold(norm: NormRecord | None, rows: Wide) -> Wide:
    """(…, C): rows that read a norm's output, as they read its input divided by its deviation."""
    if norm is None:
        return rows
    rows = rows * norm.gamma
    return rows - norm.law.mean(rows)


def _norm_before(
    model: "Model", trace: Trace, attention: Attention, side: Side
) -> NormRecord | None:
    where = where_read(model, trace, attention, side)
    return where if isinstance(where, NormRecord) else None


def _token_vectors(
    model: "Model", trace: Trace, attention: Attention, side: Side, whole: bool
) -> Wide:
    """(token, C): token vectors alone, put through the norm after the embedding where there is one, and
    divided by their deviation where the head reads a norm."""
    stack = stack_of(attention, side)[0]
    recorded = trace.summands[stack]["tokens"]
    chosen = _table(model, recorded, trace.tokens_of(stack)) if whole else recorded
    vectors = chosen.astype(np.float64)
    if (first := embedding_norm(trace, stack)) is not None:
        vectors = divided(first, vectors, centred=True) * first.gamma + first.beta
    norm = _norm_before(model, trace, attention, side)
    return vectors if norm is None else divided(norm, vectors)


def divided(norm: NormRecord, vectors: Wide, *, centred: bool = False) -> Wide:
    """Vectors divided by their own deviation, as this norm takes it. centred: without their mean."""
    mean, size = norm.law.statistics(vectors)
    result: Wide = (vectors - mean if centred else vectors) / np.sqrt(size + norm.epsilon)
    return result


def _table(model: "Model", recorded: Array, tokens: Sequence[Token]) -> Array:
    """(V, C): the token table as it enters the stream."""
    return table_factor(model, recorded, tokens) * model.embedding


@asked
def table_factor(model: "Model", recorded: Array, tokens: Sequence[Token]) -> float:
    """The number by which token vectors are multiplied as they enter the stream: 1 in most models."""
    rows = model.embedding[[token.id for token in tokens]]
    factor = float((recorded * rows).sum() / np.square(rows).sum())
    if not np.allclose(recorded, factor * rows, rtol=1e-3, atol=1e-4 * np.abs(recorded).max()):
        raise ValueError(f"The token vectors of {model.name} are not rows of one table.")
    return factor


def _singular(left: Wide, right: Wide) -> Wide:
    """Singular values of leftᵀ · right, of which each has D rows."""
    values: Wide = np.linalg.svd(
        np.linalg.qr(left.T)[1] @ np.linalg.qr(right.T)[1].T, compute_uv=False
    )
    return values


ReadsAs = Literal["Q", "K", "V"]


@dataclass(frozen=True)
class Composition:
    """‖W_OV of the earlier head · what the later one reads with‖, as a share of both lengths (Frobenius)."""

    earlier: Head
    later: Head
    reads: ReadsAs  # through its queries, keys or values
    ratio: float


def compositions(heads: Sequence[HeadMatrices]) -> Iterator[Composition]:
    """Of each pair of heads of which the later reads the stream that the earlier writes to, up to three
    numbers, as `model.arithmetic.composition` says."""
    for first, second in combinations([_Grams(one) for one in heads], 2):
        yield from _between(first, second)


def compositions_of(chosen: HeadMatrices, heads: Iterable[HeadMatrices]) -> Iterator[Composition]:
    """The same of one head with each of the others. These may be made one by one."""
    grams = _Grams(chosen)
    for one in heads:
        yield from _between(grams, _Grams(one))


class _Grams:
    """The D × D products of a head's maps that the norms are made of."""

    def __init__(self, one: HeadMatrices) -> None:
        self.one = one
        query, key, self.gram = (side @ side.T for side in (one.query, one.key, one.value))
        output = one.output.T @ one.output
        looks, self.length = (
            float(np.sqrt(np.sum(first * second)))
            for first, second in ((query, key), (self.gram, output))
        )
        # What it reads with, what stands behind that, and the length of both.
        self.reads: dict[ReadsAs, tuple[Wide, Wide, float]] = {
            "Q": (one.query, key, looks),
            "K": (one.key, query, looks),
            "V": (one.value, output, self.length),
        }


def _between(first: _Grams, second: _Grams) -> Iterator[Composition]:
    earlier, later = sorted((first, second), key=lambda one: one.one.order)
    if earlier.one.order == later.one.order:
        return
    for reads, (near, behind, length) in later.reads.items():
        if earlier.one.stack == (later.one.stack if reads == "Q" else later.one.read):
            seen = near @ earlier.one.output  # (D, D)
            square = float(np.sum((seen @ earlier.gram) * (behind @ seen)))
            ratio = max(square, 0.0) ** 0.5 / (earlier.length * length)
            yield Composition(earlier.one.head, later.one.head, reads, ratio)
