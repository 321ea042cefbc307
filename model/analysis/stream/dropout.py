"""Dropout as training applies it, on values that were recorded without it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from model.trace.arrays import Array


class Dropped(NamedTuple):
    """Values after dropout, and which of them it kept."""

    values: NDArray[np.float64]
    kept: NDArray[np.bool_]


def dropped(values: Array, rate: float, seed: int) -> Dropped:
    """Each value becomes 0 with probability `rate`; the rest is divided by 1 - rate, which keeps the
    mean on average over seeds. A seed fixes the draw.

    Source: Srivastava et al. 2014. Raises ValueError unless 0 <= rate < 1.
    """
    if not 0 <= rate < 1:
        raise ValueError(f"The rate of dropout is {rate:g}; it must be from 0 up to below 1.")
    kept = np.random.default_rng(seed).random(values.shape) >= rate
    return Dropped(np.where(kept, values / (1.0 - rate), 0.0), kept)


def mean_over_draws(values: Array, rate: float, draws: int) -> float:
    """The mean of the values after dropout, averaged over the seeds 0 to draws - 1."""
    return float(np.mean([dropped(values, rate, seed).values.mean() for seed in range(draws)]))
