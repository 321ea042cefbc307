"""Dropout: what is kept grows by 1/(1 - p), the mean stays on average, the draw is seeded."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from model.analysis.stream.feed_forward import dropped, mean_over_draws
from tests.cases import cases

VALUES = np.random.default_rng(5).standard_normal((40, 50)).astype(np.float32) + 1


@cases("rate", [0.1, 0.5, 0.9])
def test_a_value_is_zero_or_divided_as_pytorch_divides(rate) -> None:
    torch.manual_seed(0)
    found = dropped(VALUES, rate, seed=3)
    assert 0 < found.kept.sum() < VALUES.size
    np.testing.assert_array_equal(found.values[~found.kept], 0)
    torchs = F.dropout(torch.tensor(VALUES), rate)
    factor = (torchs / torch.tensor(VALUES))[torchs != 0].mean().item()
    np.testing.assert_allclose(found.values[found.kept], VALUES[found.kept] * factor, rtol=1e-5)


def test_the_share_set_to_zero_is_the_rate() -> None:
    ones = np.ones(100_000, np.float32)
    assert (~dropped(ones, 0.1, seed=0).kept).mean() == pytest.approx(0.1, abs=0.005)


def test_the_mean_stays_on_average_but_not_in_one_draw() -> None:
    mean = float(VALUES.mean())
    assert mean_over_draws(VALUES, 0.1, 200) == pytest.approx(mean, abs=0.005)
    assert abs(dropped(VALUES, 0.5, 0).values.mean() - mean) > 1e-4


def test_the_same_seed_gives_the_same_draw_and_another_seed_another() -> None:
    first, again, other = (dropped(VALUES, 0.3, seed).kept for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_a_rate_of_zero_changes_nothing() -> None:
    np.testing.assert_array_equal(dropped(VALUES, 0.0, 0).values, VALUES)


@cases("rate", [-0.1, 1.0, float("nan")])
def test_a_rate_that_is_none_is_refused_in_a_sentence(rate) -> None:
    with pytest.raises(ValueError, match="dropout rate"):
        dropped(VALUES, rate, 0)
