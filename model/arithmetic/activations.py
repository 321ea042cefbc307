"""Activation functions, their slopes, the feed-forward layer and dropout."""

import math
from collections.abc import Callable

import numpy as np

from model.arithmetic import Array64

_TANH_FACTOR = math.sqrt(2.0 / math.pi)
_TANH_CUBE = 0.044715


def normal_share(points: Array64) -> Array64:
    """Φ(x): the share of a standard normal distribution below x."""
    shares = [0.5 * (1.0 + math.erf(x / math.sqrt(2.0))) for x in np.ravel(points)]
    return np.array(shares, dtype=np.float64).reshape(np.shape(points))


def relu(points: Array64) -> Array64:
    """x above 0, and 0 below."""
    return np.maximum(points, 0.0)


def relu_slope(points: Array64) -> Array64:
    """1 above 0 and 0 below; at 0 itself 0, as PyTorch takes it."""
    return np.asarray(points > 0, dtype=np.float64)


def relu2(points: Array64) -> Array64:
    """x² above 0, and 0 below. Source: So et al. 2021, "Primer"."""
    return relu(points) ** 2


def relu2_slope(points: Array64) -> Array64:
    """2x above 0 and 0 below."""
    return 2.0 * relu(points)


def gelu(points: Array64) -> Array64:
    """x · Φ(x). Source: Hendrycks and Gimpel 2016, "Gaussian Error Linear Units"."""
    return points * normal_share(points)


def gelu_slope(points: Array64) -> Array64:
    """Φ(x) + x · φ(x), with φ the standard normal density."""
    density = np.exp(-0.5 * points**2) / math.sqrt(2.0 * math.pi)
    return normal_share(points) + points * density


def gelu_tanh(points: Array64) -> Array64:
    """½x(1 + tanh(√(2/π)(x + 0.044715x³))): the approximation GPT-2 was trained with."""
    return 0.5 * points * (1.0 + np.tanh(_TANH_FACTOR * (points + _TANH_CUBE * points**3)))


def gelu_tanh_slope(points: Array64) -> Array64:
    """The derivative of `gelu_tanh`."""
    bend = np.tanh(_TANH_FACTOR * (points + _TANH_CUBE * points**3))
    inner = _TANH_FACTOR * (1.0 + 3.0 * _TANH_CUBE * points**2)
    return np.asarray(0.5 * (1.0 + bend) + 0.5 * points * (1.0 - bend**2) * inner)


def sigmoid(points: Array64) -> Array64:
    """1 / (1 + e^−x), which does not overflow."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * points)))


def silu(points: Array64) -> Array64:
    """x · sigmoid(x), the gate of SwiGLU."""
    return points * sigmoid(points)


def silu_slope(points: Array64) -> Array64:
    """s + x·s·(1 − s), with s the sigmoid of x."""
    share = sigmoid(points)
    return share + points * share * (1.0 - share)


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
