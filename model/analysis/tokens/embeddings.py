"""The token table: a look-up as a product, and which rows point the same way."""

from dataclasses import dataclass

import numpy as np

from model.trace.arrays import Array, read_only


@dataclass(frozen=True)
class Neighbour:
    """A token of the vocabulary and the cosine of the angle between its vector and another's."""

    id: int
    cosine: float


def one_hot_product(table: Array, id_: int) -> Array:
    """(d_model,): the one-hot row of a token times the table (vocabulary, d_model), as a product
    over every row. The law: it is the token's own row."""
    hot = np.zeros(len(table), np.float32)
    hot[id_] = 1
    return read_only(hot @ table)


def cosines(table: Array, vector: Array) -> Array:
    """(row,): the cosine of the angle between a vector and each row of a table; 0 where either is
    zero. Computed in float64."""
    squares = np.einsum("vc,vc->v", table, table, dtype=np.float64)
    lengths = np.sqrt(squares) * np.linalg.norm(vector.astype(np.float64))
    products = table @ vector
    return read_only(np.divide(products, lengths, out=np.zeros(len(table)), where=lengths > 0))


def neighbours(table: Array, id_: int, count: int) -> tuple[Neighbour, ...]:
    """The tokens of the whole vocabulary whose vectors point most nearly the same way as one
    token's, itself left out, the nearest first; equal ones by id."""
    found = cosines(table, table[id_])
    order = np.argsort(-found, kind="stable")
    others = order[order != id_][:count]
    return tuple(Neighbour(int(other), float(found[other])) for other in others)
