"""The token table: a look-up as a product, and which tokens have similar vectors."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.trace.arrays import Array, F, read_only


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
