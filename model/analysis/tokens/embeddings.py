"""Token vectors: a look-up as a product, similar ones, one token in two sentences, two orders of the same
tokens, and windows over a text."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.trace.arrays import Array, F, read_only
from model.trace.records import Token
from model.trace.trace import Trace


@dataclass(frozen=True)
class Neighbour:
    """A token of the vocabulary and the cosine of the angle between its vector and another's."""

    id: int
    cosine: float


def one_hot_product(table: Array, id_: int) -> Array:
    """(d_model,): the one-hot row of a token times the table (vocabulary, d_model), which is the
    token's own row."""
    hot = np.zeros(len(table), np.float32)
    hot[id_] = 1
    return read_only(hot @ table)


def cosines(table: NDArray[F], vectors: NDArray[F]) -> Array:
    """(row,) or (row, other): the cosine of the angle between each row of a table and a vector (C,), or
    each of several (other, C); 0 where either is zero. Lengths are computed in float64."""
    squares = np.einsum("vc,vc->v", table, table, dtype=np.float64)
    others = np.linalg.norm(vectors.astype(np.float64), axis=-1)
    lengths = np.multiply.outer(np.sqrt(squares), others)
    products = table @ vectors.T
    return read_only(np.divide(products, lengths, out=np.zeros(lengths.shape), where=lengths > 0))


def neighbours(table: Array, id_: int, count: int) -> tuple[Neighbour, ...]:
    """The tokens with the most similar vectors to one token's, itself left out, the nearest first;
    ties by id."""
    found = cosines(table, table[id_])
    order = np.argsort(-found, kind="stable")
    others = order[order != id_][:count]
    return tuple(Neighbour(int(other), float(found[other])) for other in others)


@dataclass(frozen=True, eq=False)
class Similarity:
    """Cosines of the token's own vector, then of each state of the stream."""

    word: Array  # (1 + state,): between the token in the one sentence and in the other
    others: Array | None  # (1 + state,): mean over the other sentence's other tokens, if any


def shared_tokens(one: Sequence[Token], other: Sequence[Token]) -> tuple[Token, ...]:
    """The typed tokens that occur in both sentences, each once, in the order of the first."""
    known = {token.id for token in other if not token.special}
    found = {token.id: token for token in one if not token.special and token.id in known}
    return tuple(found.values())


def places_of(tokens: Sequence[Token], id_: int) -> tuple[int, ...]:
    """Where a token stands in a sentence, counted from 0."""
    return tuple(place for place, token in enumerate(tokens) if token.id == id_)


def similarity(one: Trace, other: Trace, places: tuple[int, int]) -> Similarity:
    """How similar the tokens at a place of each text are. Both are runs of the same model."""
    here, there = places
    word, others = [], []
    for left, right in zip(_vectors(one), _vectors(other), strict=True):
        found = cosines(right, left[here])
        word.append(found[there])
        rest = np.delete(found, places_of(other.tokens, one.tokens[here].id))
        others.append(rest.mean() if rest.size else np.nan)
    mean = np.array(others)
    return Similarity(read_only(np.array(word)), None if np.isnan(mean).any() else read_only(mean))


def _vectors(trace: Trace) -> tuple[Array, ...]:
    """(token, d_model) each: the token vectors, then the states of the stack that read the text."""
    return (trace.embeddings, *trace.residual[trace.source])


# Two sentences of the same tokens in another order: does a model tell them apart?
# Without positions and mask, attention is permutation-equivariant: f(PX) = P f(X). Each token then gets the
# same vector wherever it stands.

LISTED = 6  # tokens named in a refusal


@dataclass(frozen=True, eq=False)
class Reordered:
    """The last state of each token in two sentences."""

    places: tuple[tuple[int, int], ...]  # of each token in the first, in the second
    first: Array  # (token, d_model), in the order of the first sentence
    second: Array  # (token, d_model): the same tokens of the second sentence

    @property
    def differences(self) -> Array:
        """(token,): largest |first - second| over the dimensions."""
        return read_only(np.abs(self.first - self.second).max(-1))

    @property
    def largest(self) -> float:
        return float(self.differences.max())


def reordered(one: Trace, other: Trace) -> Reordered:
    """Two runs of one model, token beside token. Raises ValueError as `same_tokens` does."""
    places = same_tokens(one.tokens, other.tokens)
    first, second = one.residual[one.source][-1], other.residual[other.source][-1]
    return Reordered(places, first, read_only(second[[there for _, there in places]]))


def same_tokens(one: Sequence[Token], other: Sequence[Token]) -> tuple[tuple[int, int], ...]:
    """The place of each token of one sentence and its place in the other; equal tokens are paired in
    order. Raises ValueError where the sentences hold different tokens."""
    for tokens, against, name in ((one, other, "first"), (other, one, "second")):
        more = Counter(token.id for token in tokens) - Counter(token.id for token in against)
        if more:
            texts = dict.fromkeys(token.text for token in tokens if token.id in more)
            listed = ", ".join(f"“{text}”" for text in list(texts)[:LISTED])
            raise ValueError(
                f"Both sentences must have the same tokens. Only in the {name}: {listed}."
            )
    waiting = defaultdict(list)
    for place in reversed(range(len(other))):
        waiting[other[place].id].append(place)
    return tuple((place, waiting[token.id].pop()) for place, token in enumerate(one))
