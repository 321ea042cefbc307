"""What a recorded norm did to each token, and what other norms would make of the same input.

Everything here is computed in float64 from the recorded input. Axes: token, d_model.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.arithmetic import normalization
from model.trace.arrays import Array
from model.trace.records import NormRecord

Wide = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TokenStatistics:
    """Mean, biased variance and its root for each token, over the dimensions. (token,) each."""

    mean: Wide
    variance: Wide

    @property
    def deviation(self) -> Wide:
        """(token,): the root of the variance, without epsilon."""
        return np.asarray(np.sqrt(self.variance))


def token_statistics(vectors: Array | Wide) -> TokenStatistics:
    """vectors (token, d_model) to the statistics of each row."""
    wide = vectors.astype(np.float64)
    return TokenStatistics(wide.mean(-1), wide.var(-1))


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


@dataclass(frozen=True)
class KernelCheck:
    """Largest differences between what the kernel recorded and the same recomputed in float64."""

    mean: float
    inverse_deviation: float  # of 1/sqrt(variance + epsilon), as a share of it
    output: float | None  # None where the output was not kept


def kernel_check(norm: NormRecord) -> KernelCheck:
    """How far the kernel's own statistics and output lie from those of the recorded input."""
    wide = norm.input.astype(np.float64)
    mean = wide.mean(-1) if norm.kind == "layer" else np.zeros(len(wide))
    inverse = 1 / np.sqrt(np.square(wide - mean[:, None]).mean(-1) + norm.epsilon)
    output = None
    if norm.recorded is not None:
        expected = (wide - mean[:, None]) * inverse[:, None] * norm.gamma + norm.beta
        output = float(np.abs(expected - norm.recorded).max())
    return KernelCheck(
        float(np.abs(mean - norm.mean).max()),
        float(np.abs(norm.inverse_deviation / inverse - 1).max()),
        output,
    )
