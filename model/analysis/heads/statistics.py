"""Statistics of heads, always from full rows of weights: what a head tends to look at."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from model.trace.arrays import Array, Mask
from model.trace.records import Attention

NOTHING_COMES_BACK = "No token comes back in this text with another one between."
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

    -1: the previous token; 0: the token itself; +1: the next one. Raises ValueError if no query
    has such a key.
    """
    diagonal = np.diagonal(weights, offset)
    if not len(diagonal):
        raise ValueError(f"The text is too short: no token has one {abs(offset)} further.")
    return float(diagonal.mean())


def on_first(weights: Array) -> float:
    """Mean weight on the first token, over the queries after it. Raises ValueError if there are
    none."""
    if len(weights) < 2:
        raise ValueError("The text is too short: no token stands after the first.")
    return float(weights[1:, 0].mean())


def on_keys(weights: Array, keys: Mask) -> float:
    """Mean share of a row that lies on some of the keys, (key,) True where counted. Raises
    ValueError if no key is."""
    if not keys.any():
        raise ValueError("The text has none of the tokens that are counted.")
    return float(weights[:, keys].sum(-1).mean())


def after_the_same(tokens: Sequence[int] | Sequence[str]) -> Mask:
    """(query, key): True where the token before the key is the query's token, said earlier.

    The key itself stands before the query: in "a b … a" the second "a" would look at "b". In "a a"
    nothing is looked at, for there the token that followed is the query itself.
    """
    these = np.asarray(tokens)
    follows = np.zeros((len(these), len(these)), dtype=bool)
    follows[:, 1:] = these[:, None] == these[None, :-1]
    mask: Mask = np.tril(follows, -1)
    return mask


def mean_share(weights: Array, cells: Mask) -> NDArray[np.float64]:
    """(…): weights (…, query, key) summed over the cells of each row that has some, then the mean
    over those rows. Raises ValueError if no row has any."""
    rows = int(cells.any(-1).sum())
    if rows == 0:
        raise ValueError("No row has one of the cells that are counted.")
    on_cells = np.where(cells, weights, 0.0).sum((-2, -1), dtype=np.float64)
    return np.asarray(on_cells / rows)


def prefix_matching(weights: Array, tokens: Sequence[int] | Sequence[str]) -> float:
    """Mean share of a row on what followed the same token earlier, all earlier times together, over
    the tokens that come back (Olsson et al. 2022). Raises ValueError if no token comes back."""
    looked_for = after_the_same(tokens)
    if not looked_for.any():
        raise ValueError(NOTHING_COMES_BACK)
    return float(mean_share(weights, looked_for))


def induction(weights: Array, period: int) -> float:
    """Prefix matching in a text of `period` different tokens said twice: mean weight, in its second
    half, on the token after the first occurrence of the query's token."""
    return prefix_matching(weights, [*range(period)] * 2)


def by_head(attention: Attention, statistic: Callable[[Array], float]) -> NDArray[np.float64]:
    """(head,): one statistic of each head of a sub-layer."""
    return np.array([statistic(attention.weights(head)) for head in range(attention.heads)])
