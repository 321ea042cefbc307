"""Weights of many heads together: means and attention rollout. The model itself computes neither."""

from collections.abc import Sequence

import numpy as np

from model.analysis.heads.families import Family, head_weights
from model.trace.arrays import Array, read_only
from model.trace.trace import Trace


def mean_weights(trace: Trace, family: Family) -> Array:
    """(layer, query, key): the mean weights of each layer's heads."""
    members = family.members(trace)
    return read_only(np.stack([np.mean(list(head_weights([one])), axis=0) for one in members]))


def rollout(layers: Sequence[Array] | Array) -> Array:
    """(layer, token, token): how much of each token this layer and all before it mix into a token, by
    the weights alone.

    layers: (token, token) mean weights of self-attention. The shortcut counts as half: A = W/2 + I/2,
    rows normalized; each A is multiplied by the product of those below. Values, W_O, norms and
    feed-forward are left out. Source: Abnar and Zuidema 2020, Quantifying attention flow, 3.
    """
    so_far: list[np.ndarray] = []
    for weights in layers:
        mixed = weights.astype(np.float64) / 2 + np.eye(len(weights)) / 2
        mixed /= mixed.sum(-1, keepdims=True)
        so_far.append(mixed @ so_far[-1] if so_far else mixed)
    return read_only(np.stack(so_far))
