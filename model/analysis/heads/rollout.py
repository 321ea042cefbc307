"""Weights put together: means over heads and attention rollout. The model itself computes neither."""

from collections.abc import Sequence

import numpy as np

from model.analysis.heads.families import Family
from model.trace.arrays import Array, read_only
from model.trace.trace import Trace


def mean_weights(trace: Trace, family: Family) -> Array:
    """(layer, query, key): the mean of each layer's heads. Rows sum to 1 as the heads' own do."""
    return read_only(
        np.stack(
            [
                np.mean([one.weights(head) for head in range(one.heads)], axis=0)
                for one in family.members(trace)
            ]
        )
    )


def rollout(layers: Sequence[Array] | Array) -> Array:
    """(layer, token, token): for each layer, how much of every token of the text is mixed into a
    token by this layer and all before it, by the weights alone.

    layers: (token, token) mean weights of each layer of self-attention, rows sum to 1. Half of each
    token is taken to stay itself, for the shortcut: A = W/2 + I/2, rows brought to 1; then each A is
    multiplied by the product of those below. Values, W_O, norms and feed-forward are left out.
    Source: Abnar and Zuidema 2020, Quantifying attention flow in transformers, 3.
    """
    so_far: list[np.ndarray] = []
    for weights in layers:
        mixed = weights.astype(np.float64) / 2 + np.eye(len(weights)) / 2
        mixed /= mixed.sum(-1, keepdims=True)
        so_far.append(mixed @ so_far[-1] if so_far else mixed)
    return read_only(np.stack(so_far))
