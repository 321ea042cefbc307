"""Layer norm, batch norm and z-scores, one formula along different axes; and min–max scaling."""

import numpy as np

from model.arithmetic import Array64


def mean(values: Array64, axis: int = -1) -> Array64:
    """The mean along `axis`, which is kept with length 1."""
    return values.mean(axis=axis, keepdims=True)


def variance(values: Array64, axis: int = -1, *, unbiased: bool = False) -> Array64:
    """The mean squared deviation along `axis`; unbiased divides by n − 1 instead of n."""
    count = values.shape[axis] - (1 if unbiased else 0)
    return np.asarray(((values - mean(values, axis)) ** 2).sum(axis=axis, keepdims=True) / count)


def normalized(
    values: Array64, axis: int = -1, *, epsilon: float = 1e-5, unbiased: bool = False
) -> Array64:
    """(x − μ) / √(σ² + ε).

    Args:
        axis: -1: layer norm (each row); 0: batch norm (each column).
        epsilon: ε, added to the variance.
        unbiased: whether the squares are divided by one less than their number; PyTorch and GPT-2 do not.

    Source: Ba et al. 2016, "Layer Normalization".
    """
    spread = np.sqrt(variance(values, axis, unbiased=unbiased) + epsilon)
    return np.asarray((values - mean(values, axis)) / spread)


def layer_norm(
    values: Array64,
    gamma: Array64 | float = 1.0,
    beta: Array64 | float = 0.0,
    epsilon: float = 1e-5,
) -> Array64:
    """γ · x̂ + β, row by row.

    Args:
        values: (…, width).
        gamma, beta: (width,), or one number for all columns.
        epsilon: ε, added to the variance.
    """
    return gamma * normalized(values, -1, epsilon=epsilon) + beta


def min_max(values: Array64, lowest: float, highest: float) -> Array64:
    """Values mapped to the range from 0 to 1: `lowest` becomes 0 and `highest` becomes 1."""
    return (values - lowest) / (highest - lowest)


def shrinkage(widths: Array64) -> Array64:
    """The share by which the unbiased variance makes x̂ smaller at each width d: 1 − √((d−1)/d)."""
    return 1.0 - np.sqrt((widths - 1.0) / widths)
