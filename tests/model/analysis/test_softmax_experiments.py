"""Points of attention, measured: against the law, against autograd, on live heads."""

import math

import numpy as np
import pytest
import torch

from model.analysis.softmax_experiments import (
    mask_value_effect,
    routes,
    slopes,
    slopes_by_spread,
    spread,
)
from tests.model.tiny import TINY, loaded, run


def test_the_variance_of_scores_is_their_width_and_dividing_brings_it_to_one(
    subtests: pytest.Subtests,
) -> None:
    for width in [4, 64, 512]:
        with subtests.test(width=width):
            for seed in range(3):
                sampled = spread(width, keys=16, seed=seed)
                assert sampled.plain.variance == pytest.approx(width, rel=0.12)
                assert sampled.scaled.variance == pytest.approx(1, rel=0.12)
                assert sampled.plain.variance == pytest.approx(width * sampled.scaled.variance)


def test_only_scaled_weights_stay_as_even_at_every_width() -> None:
    narrow, wide = (spread(width, keys=16, seed=1) for width in (16, 512))
    assert wide.scaled.entropy == pytest.approx(narrow.scaled.entropy, rel=0.05)
    assert wide.plain.entropy < 0.3 * narrow.plain.entropy
    assert wide.plain.largest > 0.9 > narrow.plain.largest
    assert wide.plain.slope < 0.2 * wide.scaled.slope
    assert spread(64, keys=8, seed=5) == spread(64, keys=8, seed=5)
    assert spread(64, keys=8, seed=5) != spread(64, keys=8, seed=6)


def test_the_slope_of_a_softmax_is_autograds() -> None:
    for scores in ([2, 4, 1], [0.0], [50, -50], list(np.linspace(-3, 3, 9))):
        found = slopes(scores)
        x = torch.tensor(scores, dtype=torch.float64, requires_grad=True)
        torch.softmax(x, -1)[0].backward()
        np.testing.assert_allclose(found.jacobian[0], x.grad, atol=1e-12)
        assert found.check < 1e-12
        np.testing.assert_allclose(found.jacobian.sum(-1), 0, atol=1e-12)
        assert np.diag(found.jacobian).max() <= 0.25
    with pytest.raises(ValueError, match="at least one"):
        slopes([])
    with pytest.raises(ValueError, match="finite"):
        slopes([1, math.inf])


def test_the_average_gradient_of_the_notes_holds_for_few_keys_and_small_scores_only() -> None:
    deviations = [0.1, 1.0, 10.0]
    few, many = (slopes_by_spread(deviations, keys=keys) for keys in (8, 64))
    assert 0.1 < few[0] < 0.15
    assert few[1] < 0.1
    assert few[2] < 0.02
    assert many.max() < 0.02
    assert (np.diff(few) < 0).all()
    np.testing.assert_array_equal(slopes_by_spread(deviations, keys=1), 0)
    drawn = np.random.default_rng(0).standard_normal((20_000, 8))
    for deviation, slope in zip(deviations, few, strict=True):
        weights = torch.softmax(torch.tensor(drawn * deviation), -1).numpy()
        assert slope == pytest.approx((weights * (1 - weights)).mean(), rel=0.02)


def test_both_routes_to_a_mask_agree_with_the_models_own_weights(subtests: pytest.Subtests) -> None:
    for name in [*TINY, "stories"]:
        with subtests.test(name=name):
            for attention in run(loaded(name)).attention:
                shape = attention.weights(0).shape
                mask = attention.mask if attention.mask is not None else np.tri(*shape, dtype=bool)
                for head in range(attention.heads):
                    found = routes(attention.scaled(head), mask)
                    assert found.difference < 1e-6
                    assert not found.lost.any()
                    if attention.mask is not None:
                        np.testing.assert_allclose(found.before, attention.weights(head), atol=1e-6)


def test_a_row_that_the_second_route_loses_is_counted_and_is_no_nan() -> None:
    scores = np.array([[0, 200], [1, 1]], np.float32)
    found = routes(scores, np.tri(2, dtype=bool))
    assert found.lost.tolist() == [True, False]
    assert np.isfinite(found.after).all()
    assert found.before[0].tolist() == [1, 0]
    assert found.difference < 1e-7
    with pytest.raises(ValueError, match="no key"):
        routes(scores, np.zeros((2, 2), bool))


def test_mask_values_of_a_live_head() -> None:
    attention = run(loaded("stories")).find("decoder.1.self")
    given = (attention.scores(2), attention.mask, attention.scale)
    keys = attention.mask.shape[-1]
    for early in (False, True):
        none = mask_value_effect(*given, -math.inf, before_scaling=early)
        assert none.leaked == 0
        assert none.difference == 0
        assert none.empty is None
        for mask_value in (-1e9, -1e20):
            finite = mask_value_effect(*given, mask_value, before_scaling=early)
            assert finite.leaked == 0
            assert finite.difference == 0
            assert finite.empty == pytest.approx(1 / keys)
            half = mask_value_effect(*given, mask_value, precision="float16", before_scaling=early)
            assert half.stored == -math.inf
            assert half.refused
            assert half.empty is None
        zero = mask_value_effect(*given, 0.0, before_scaling=early)
        assert zero.leaked > 0.01
        assert zero.difference > 0.01
        assert not zero.refused


def test_a_small_mask_value_before_scaling_hides_less_than_after() -> None:
    scores, mask = np.zeros((1, 2), np.float32), np.array([[True, False]])
    after = mask_value_effect(scores, mask, 0.1, -10.0)
    before = mask_value_effect(scores, mask, 0.1, -10.0, before_scaling=True)
    assert after.leaked == pytest.approx(math.exp(-10) / (1 + math.exp(-10)), rel=1e-4)
    assert before.leaked == pytest.approx(math.exp(-1) / (1 + math.exp(-1)), rel=1e-4)
