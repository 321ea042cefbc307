"""The steps between the scores and the weights of one head, in numpy."""

from collections.abc import Collection

import numpy as np

from model.trace.arrays import Array, softmax


def soft_capped(scaled: Array, cap: float) -> Array:
    """cap · tanh(scaled / cap)"""
    return np.asarray(np.float32(cap) * np.tanh(scaled / np.float32(cap)))


def probabilities(
    masked: Array, sink: float | None, cells: Collection[tuple[int, int, float]]
) -> Array:
    """(query, key): the softmax of masked scores; with a sink, what it takes in one more column. cells:
    query, key and weight of those set by hand."""
    if sink is not None:
        masked = np.concatenate([masked, np.full((len(masked), 1), sink, np.float32)], 1)
    weights = softmax(masked)
    for query in {cell[0] for cell in cells}:
        given = {key: weight for at, key, weight in cells if at == query}
        weights[query] = _row_set(weights[query], given)
    return weights


def _row_set(row: Array, given: dict[int, float]) -> Array:
    """(key,): a row in which these weights are set by hand; the others share what is left to 1."""
    free = ~np.isin(np.arange(len(row)), list(given))
    left, others = max(1 - sum(given.values()), 0.0), row[free].sum()
    changed = np.where(free & (others > 0), row * left / max(others, np.finfo(np.float32).tiny), 0)
    changed[list(given)] = list(given.values())
    return changed.astype(np.float32)
