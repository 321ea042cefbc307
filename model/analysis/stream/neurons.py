"""Statistics of the hidden layer of a feed-forward, always over all its neurons and all tokens."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.trace.arrays import Array
from model.trace.records import FeedForwardRecord


def strongest(hidden: Array, count: int) -> NDArray[np.intp]:
    """The `count` neurons with the largest |activation| on any token, the strongest first.

    hidden: (token, d_ff). Equal ones keep their order; fewer come back where there are fewer.
    """
    peaks = np.abs(hidden).max(0)
    return np.argsort(-peaks, kind="stable")[:count]


@dataclass(frozen=True)
class NeuronStatistics:
    """One layer's neurons on one text."""

    below_zero: float  # share of values below 0 before the activation
    mean_before: float
    mean_size: float  # mean |activation|
    peak: tuple[int, int]  # token and neuron of the largest |activation|
    peak_value: float


def neuron_statistics(record: FeedForwardRecord) -> NeuronStatistics:
    """The statistics of one layer, from every token and neuron."""
    token, neuron = np.unravel_index(np.abs(record.hidden).argmax(), record.hidden.shape)
    return NeuronStatistics(
        below_zero=float((record.before < 0).mean()),
        mean_before=float(record.before.mean(dtype=np.float64)),
        mean_size=float(np.abs(record.hidden).mean(dtype=np.float64)),
        peak=(int(token), int(neuron)),
        peak_value=float(record.hidden[token, neuron]),
    )


@dataclass(frozen=True, eq=False)
class Histogram:
    """Shares of all values in bins of equal width; `outside` counts the values beyond the ends."""

    edges: NDArray[np.float64]  # (bin + 1,)
    shares: NDArray[np.float64]  # (bin,): of all values, those outside included
    outside: int
    total: int


def histogram(values: Array, *, least: float = 4.0, bins: int = 80) -> Histogram:
    """Where the values lie. The bins reach from -least to least, and on to the 0.1th and 99.9th
    percentile where those lie beyond."""
    low, high = np.percentile(values, [0.1, 99.9])
    edges = np.linspace(min(float(low), -least), max(float(high), least), bins + 1)
    counts, _ = np.histogram(values, edges)
    return Histogram(edges, counts / values.size, int(values.size - counts.sum()), values.size)
