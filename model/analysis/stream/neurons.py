"""The hidden layer of a feed-forward: statistics over all neurons and tokens, and dropout."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from model.trace.arrays import Array, Wide
from model.trace.records import FeedForwardRecord


def strongest(hidden: Array, count: int) -> NDArray[np.intp]:
    """At most `count` neurons with the largest |activation| on any token, the strongest first; ties
    keep their order. hidden: (token, d_mlp)."""
    return np.argsort(-np.abs(hidden).max(0), kind="stable")[:count]


class NeuronStatistics(NamedTuple):
    """One layer's neurons on one text."""

    below_zero: float  # share of values below 0 before the activation
    mean_before: float
    mean_size: float  # mean |activation|
    peak: tuple[int, int]  # token and neuron of the largest |activation|
    peak_value: float


def neuron_statistics(record: FeedForwardRecord) -> NeuronStatistics:
    before, hidden = record.before, record.hidden
    token, neuron = np.unravel_index(np.abs(hidden).argmax(), hidden.shape)
    return NeuronStatistics(
        below_zero=float((before < 0).mean()),
        mean_before=float(before.mean(dtype=np.float64)),
        mean_size=float(np.abs(hidden).mean(dtype=np.float64)),
        peak=(int(token), int(neuron)),
        peak_value=float(hidden[token, neuron]),
    )


class Histogram(NamedTuple):
    """Shares of all values in bins of equal width."""

    edges: Wide  # (bin + 1,)
    shares: Wide  # (bin,): of all values, those outside included
    outside: int  # values beyond the ends
    total: int
    reach: tuple[float, float]  # of all values


def histogram(values: Array, *, least: float = 4.0, bins: int = 80) -> Histogram:
    """Where the values lie: from -least to least, and on to the 0.1th and 99.9th percentile where
    those lie beyond."""
    low, high = np.percentile(values, [0.1, 99.9])
    edges = np.linspace(min(float(low), -least), max(float(high), least), bins + 1)
    counts, _ = np.histogram(values, edges)
    outside, reach = int(values.size - counts.sum()), (float(values.min()), float(values.max()))
    return Histogram(edges, counts / values.size, outside, values.size, reach)


class Dropped(NamedTuple):
    """Values after dropout, and which of them it kept."""

    values: Wide
    kept: NDArray[np.bool_]


def dropped(values: Array, rate: float, seed: int | tuple[int, ...]) -> Dropped:
    """Each value becomes 0 with probability `rate`; the rest is divided by 1 - rate, which keeps the
    mean on average over seeds. A seed fixes the draw.

    Source: Srivastava et al. 2014. Raises ValueError unless 0 <= rate < 1.
    """
    if not 0 <= rate < 1:
        raise ValueError(f"The dropout rate is {rate:g}; it must be at least 0 and below 1.")
    kept = np.random.default_rng(seed).random(values.shape) >= rate
    return Dropped(np.where(kept, values / (1.0 - rate), 0.0), kept)


def mean_over_draws(values: Array, rate: float, draws: int) -> float:
    """The mean of the values after dropout, averaged over the seeds 0 to draws - 1."""
    return float(np.mean([dropped(values, rate, seed).values.mean() for seed in range(draws)]))
