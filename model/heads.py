"""Statistics of heads, always from full rows of weights: what a head tends to look at."""

import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from model.trace import Array, Attention

F = TypeVar("F", np.float32, np.float64)


def entropy(weights: NDArray[F]) -> NDArray[F]:
    """(…, query): -sum w·ln(w) in nats; 0 for a row on one key, ln(n) for a row spread over n
    keys."""
    logs = np.log(np.where(weights > 0, weights, 1.0))
    result: NDArray[F] = np.maximum(-(weights * logs).sum(-1), 0.0)
    return result


def largest_weight(weights: Array) -> Array:
    """(…, query): the largest weight of each row."""
    return weights.max(-1)


def distance(weights: Array) -> float:
    """Mean |query - key| in tokens, by weight."""
    queries, keys = weights.shape
    apart = np.abs(np.arange(queries)[:, None] - np.arange(keys)[None])
    return float((weights * apart).sum() / queries)


def at_offset(weights: Array, offset: int) -> float:
    """Mean weight on the key that lies `offset` tokens from its query, over the queries that have
    one.

    -1: the previous token; 0: the token itself; +1: the next one.
    """
    diagonal = np.diagonal(weights, offset)
    return float(diagonal.mean()) if len(diagonal) else math.nan


def on_first(weights: Array) -> float:
    """Mean weight on the first token, over the queries after it."""
    return float(weights[1:, 0].mean()) if len(weights) > 1 else math.nan


def induction(weights: Array, period: int) -> float:
    """Mean weight, in the second half of a text of `period` tokens said twice, on the token after
    the first occurrence of the query's token (Olsson et al. 2022)."""
    return float(np.diagonal(weights[period:], 1)[:period].mean())


def by_head(attention: Attention, statistic: Callable[[Array], float]) -> NDArray[np.float64]:
    """(head,): one statistic of each head of a sub-layer."""
    return np.array([statistic(attention.weights(head)) for head in range(attention.heads)])
