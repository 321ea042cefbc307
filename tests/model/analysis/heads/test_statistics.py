"""Statistics of heads, on rows of weights whose answer is known."""

import math

import numpy as np
import pytest

from model.analysis.heads import statistics
from tests.cases import cases

EVEN = np.full((4, 4), 0.25, dtype=np.float32)
ITSELF = np.eye(4, dtype=np.float32)
PREVIOUS = np.eye(4, k=-1, dtype=np.float32)
PREVIOUS[0, 0] = 1


def test_entropy_is_zero_on_one_key_and_the_logarithm_of_as_many_as_it_is_spread_over() -> None:
    np.testing.assert_allclose(statistics.entropy(EVEN), math.log(4), rtol=1e-6)
    np.testing.assert_array_equal(statistics.entropy(ITSELF), 0)
    assert (statistics.entropy(np.zeros((2, 2), dtype=np.float32)) == 0).all()
    half = np.array([[0.5, 0.5, 0, 0]], dtype=np.float32)
    np.testing.assert_allclose(statistics.entropy(half), math.log(2), rtol=1e-6)
    beside_a_sink = np.array([[0.5, 0, 0, 0]], dtype=np.float32)
    np.testing.assert_allclose(statistics.entropy(beside_a_sink), math.log(2), rtol=1e-6)


def test_distance_is_the_mean_number_of_tokens_between_query_and_key() -> None:
    assert statistics.distance(ITSELF) == 0
    assert statistics.distance(PREVIOUS) == pytest.approx(3 / 4)
    assert statistics.distance(EVEN) == pytest.approx(np.mean([1.5, 1, 1, 1.5]))


def test_offsets_count_from_the_query_and_skip_queries_without_such_a_key() -> None:
    assert statistics.at_offset(PREVIOUS, -1) == 1
    assert statistics.at_offset(PREVIOUS, 0) == pytest.approx(1 / 4)
    assert statistics.at_offset(PREVIOUS, 1) == 0
    assert statistics.at_offset(PREVIOUS.T.copy(), 1) == 1
    assert statistics.at_offset(ITSELF, 0) == 1
    with pytest.raises(ValueError, match="too short"):
        statistics.at_offset(ITSELF, 4)


def test_the_first_token_is_judged_by_the_queries_after_it() -> None:
    assert statistics.on_first(PREVIOUS) == pytest.approx(1 / 3)
    assert statistics.on_first(EVEN) == pytest.approx(1 / 4)
    assert statistics.on_first(PREVIOUS, across=True) == pytest.approx(PREVIOUS[:, 0].mean())
    with pytest.raises(ValueError, match="too short"):
        statistics.on_first(np.ones((1, 1), dtype=np.float32))


def test_the_share_on_some_keys_is_what_lies_on_them_in_a_mean_row() -> None:
    assert statistics.on_keys(PREVIOUS, np.array([True, False, True, False])) == pytest.approx(
        3 / 4
    )
    with pytest.raises(ValueError, match="none of the tokens"):
        statistics.on_keys(EVEN, np.zeros(4, dtype=bool))


def test_prefix_matching_in_any_text_is_the_share_on_what_followed_the_same_token_before() -> None:
    ids = [7, 8, 9, 7, 5, 7]  # the second 7 looks at 8; the third one at 8 and at 5
    weights = np.zeros((6, 6), dtype=np.float32)
    weights[3, 1], weights[5, 1], weights[5, 4] = 0.5, 0.25, 0.25
    assert statistics.prefix_matching(weights, ids) == pytest.approx(0.5)
    assert statistics.prefix_matching(np.eye(6, dtype=np.float32), ids) == 0
    for without in ([1, 2, 3], [1, 1]):  # in "a a" only itself would follow
        with pytest.raises(ValueError, match="occurs twice"):
            statistics.prefix_matching(np.eye(len(without), dtype=np.float32), without)


def test_in_a_list_said_twice_both_scores_are_a_mean_along_one_diagonal() -> None:
    rows = np.random.default_rng(0).dirichlet(np.ones(10), 10).astype(np.float32)
    expected = pytest.approx(np.diagonal(rows, -4)[1:].mean())
    assert statistics.prefix_matching(rows, [4, 2, 9, 1, 6] * 2) == expected
    assert statistics.induction(rows, 5) == expected


@cases("period", [3, 5])
def test_induction_looks_at_what_followed_the_same_token_before(period) -> None:
    weights = np.zeros((2 * period, 2 * period), dtype=np.float32)
    for query in range(2 * period):
        weights[query, query - period + 1 if query >= period else 0] = 1
    assert statistics.induction(weights, period) == 1
    assert statistics.induction(np.eye(2 * period, dtype=np.float32), period) == 0
