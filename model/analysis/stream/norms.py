"""What a recorded norm did to each token, and what other norms would make of the same input.

Everything here is computed in float64 from the recorded input. Axes: token, d_model.
"""

from typing import NamedTuple

import numpy as np

from model.arithmetic import normalization
from model.trace.arrays import Array, Wide
from model.trace.records import NormRecord


class TokenStatistics(NamedTuple):
    """Of each token over the dimensions, (token,) each, without epsilon."""

    mean: Wide
    variance: Wide  # biased
    deviation: Wide


def token_statistics(vectors: Array | Wide) -> TokenStatistics:
    wide = vectors.astype(np.float64)
    return TokenStatistics(wide.mean(-1), wide.var(-1), wide.std(-1))


def layer_normalized(vectors: Array, epsilon: float, *, unbiased: bool = False) -> Wide:
    """(token, d_model): (x - mean) / sqrt(variance + epsilon), before gamma and beta.

    The unbiased variance divides by d - 1. Source: Ba et al. 2016, "Layer Normalization".
    """
    return normalization.normalized(vectors.astype(np.float64), epsilon=epsilon, unbiased=unbiased)


def rms_normalized(vectors: Array, epsilon: float) -> Wide:
    """(token, d_model): x / sqrt(mean of x² + epsilon), before gamma. No mean is subtracted.

    Source: Zhang and Sennrich 2019, "Root Mean Square Layer Normalization".
    """
    wide = vectors.astype(np.float64)
    return np.asarray(wide / np.sqrt(np.square(wide).mean(-1, keepdims=True) + epsilon))


class KernelCheck(NamedTuple):
    """Largest differences between what the kernel recorded and the same recomputed in float64."""

    mean: float
    inverse_deviation: float  # of 1/sqrt(variance + epsilon), as a share of it
    output: float | None  # None where the output was not kept


def kernel_check(norm: NormRecord) -> KernelCheck:
    """How far the kernel's own statistics and output lie from those of the recorded input."""
    mean, inverse = norm.recomputed()
    output = None
    if norm.recorded is not None:
        expected = (norm.input - mean) * inverse * norm.gamma + norm.beta
        output = float(np.abs(expected - norm.recorded).max())
    return KernelCheck(
        float(np.abs(mean[:, 0] - norm.mean).max()),
        float(np.abs(norm.inverse_deviation / inverse[:, 0] - 1).max()),
        output,
    )
