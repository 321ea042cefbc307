"""Neurons: which are the strongest, and statistics over all of them."""

import numpy as np

from model import Trace
from model.analysis.stream.feed_forward import histogram, neuron_statistics, strongest
from model.trace.records import FeedForwardRecord
from tests.model.tiny import loaded, sentence


def recorded() -> Trace:
    model = loaded("gpt")
    return model.trace(sentence(model), record="full")


def test_the_strongest_neurons_are_those_with_the_largest_size_on_any_token() -> None:
    hidden = np.array([[0.1, -5.0, 2.0, 0.0], [3.0, 1.0, 2.0, 0.0]], np.float32)
    np.testing.assert_array_equal(strongest(hidden, 3), [1, 0, 2])
    np.testing.assert_array_equal(strongest(hidden, 9), [1, 0, 2, 3])


def test_statistics_cover_every_neuron_and_token() -> None:
    before = np.array([[-1.0, 2.0], [0.0, -3.0]], np.float32)
    found = neuron_statistics(FeedForwardRecord("x", before, before * 2))
    assert found.below_zero == 0.5
    assert found.mean_before == -0.5


def test_a_histogram_counts_every_value_once() -> None:
    for record in recorded().feed_forward:
        found = histogram(record.before)
        inside = found.shares.sum() * found.total
        assert found.total == record.before.size
        np.testing.assert_allclose(inside + found.outside, found.total)
        assert found.edges[0] <= -4
        assert found.edges[-1] >= 4


def test_a_histogram_reaches_beyond_its_least_range_where_the_values_do() -> None:
    values = np.linspace(-50, 10, 2000, dtype=np.float32)
    found = histogram(values)
    assert found.edges[0] < -49
    assert found.edges[-1] > 9
    assert found.outside <= 0.002 * values.size
