"""The feed-forward layer and dropout."""

from collections.abc import Callable

import numpy as np

from model.arithmetic import Array64
from model.nn.activations import relu, silu


def swiglu(vectors: Array64, gate: Array64, up: Array64) -> Array64:
    """silu(x·W_gate) ⊙ (x·W_up). Source: Shazeer 2020, "GLU Variants Improve Transformer"."""
    return silu(vectors @ gate) * (vectors @ up)


def feed_forward(
    vectors: Array64,
    first: Array64,
    second: Array64,
    activation: Callable[[Array64], Array64] = relu,
) -> Array64:
    """Two linear maps with an activation between them, applied to each token on its own (no biases).

    Args:
        vectors: (token, width).
        first: (width, hidden).
        second: (hidden, width).
    """
    return activation(vectors @ first) @ second


def zero_of(slope: Callable[[Array64], Array64], low: float, high: float) -> float:
    """The point between `low` and `high` where a rising slope is 0, found by halving the interval."""
    for _ in range(80):
        middle = 0.5 * (low + high)
        if slope(np.asarray(middle)) < 0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def kept(draws: Array64, rate: float) -> Array64:
    """1 where dropout keeps a value, because its random draw from 0 to 1 is at least `rate`; else 0."""
    return np.asarray(draws >= rate, dtype=np.float64)


def dropped(values: Array64, keep: Array64, rate: float) -> Array64:
    """The values after dropout in training: kept ones divided by 1 − rate, the others 0."""
    return values * keep / (1.0 - rate)
