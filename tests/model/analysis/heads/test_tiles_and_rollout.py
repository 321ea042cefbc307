"""Small pictures of large weights, and weights put together."""

import numpy as np
import pytest

from model import Trace
from model.analysis.heads.families import families
from model.analysis.heads.statistics import mean_weights, rollout
from model.analysis.heads.tiles import largest_of_blocks, tiles
from tests.model.tiny import loaded, sentence


def test_a_short_text_is_shown_cell_by_cell(trace: Trace) -> None:
    for family in families(trace):
        found = tiles(trace, family)
        assert found.block == (1, 1)
        for layer, attention in enumerate(family.members(trace)):
            for head in range(attention.heads):
                np.testing.assert_array_equal(found.weights[layer, head], attention.weights(head))
            closed = np.zeros_like(found.blocked[layer])
            closed = closed if attention.mask is None else ~attention.mask
            np.testing.assert_array_equal(found.blocked[layer], closed)


def test_a_long_text_keeps_the_largest_weight_of_each_block() -> None:
    trace = loaded("gpt").trace(" ".join(["the cat saw"] * 3))  # 9 tokens in blocks of 3
    (family,) = families(trace)
    found = tiles(trace, family, most=4)
    assert found.block == (3, 3)
    weights = trace.attention[0].weights(1)
    for row in range(3):
        for column in range(3):
            part = weights[3 * row : 3 * row + 3, 3 * column : 3 * column + 3]
            assert found.weights[0, 1, row, column] == part.max()
    np.testing.assert_array_equal(found.blocked[0], np.triu(np.ones((3, 3), bool), 1))


def test_a_tile_is_the_same_however_few_queries_are_computed_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("gpt", "all-stages"):
        model = loaded(name)
        trace = model.trace(" ".join(["the cat saw a mat"] * 3))
        (family,) = families(trace)
        found = tiles(trace, family, most=5)
        monkeypatch.setattr("model.analysis.heads.tiles.TOGETHER", 1)
        np.testing.assert_allclose(tiles(trace, family, most=5).weights, found.weights, atol=1e-6)
        monkeypatch.undo()


def test_the_last_block_may_be_smaller() -> None:
    weights = np.arange(15, dtype=np.float32).reshape(3, 5)
    np.testing.assert_array_equal(largest_of_blocks(weights, (2, 2)), [[6, 8, 9], [11, 13, 14]])


def test_mean_weights_are_rows_that_sum_to_one(trace: Trace) -> None:
    for family in families(trace):
        means = mean_weights(trace, family)
        np.testing.assert_allclose(means.sum(-1), 1, atol=1e-5)
        first = family.members(trace)[0]
        expected = sum(first.weights(head) for head in range(first.heads)) / first.heads
        np.testing.assert_allclose(means[0], expected, atol=1e-6)


def test_rollout_multiplies_half_stayed_weights_from_the_first_layer_up() -> None:
    first = np.array([[1, 0], [0.5, 0.5]], np.float32)
    second = np.array([[1, 0], [1, 0]], np.float32)
    found = rollout([first, second])
    np.testing.assert_allclose(found[0], [[1, 0], [0.25, 0.75]])
    np.testing.assert_allclose(found[1], np.array([[1, 0], [0.5, 0.5]]) @ found[0])
    np.testing.assert_allclose(rollout([np.eye(3, dtype=np.float32)] * 4)[-1], np.eye(3))


@pytest.mark.parametrize("name", ["gpt", "bert"])
def test_rollout_rows_sum_to_one_and_see_no_future_that_the_mask_hides(name: str) -> None:
    model = loaded(name)
    trace = model.trace(sentence(model))
    found = rollout(mean_weights(trace, families(trace)[0]))
    np.testing.assert_allclose(found.sum(-1), 1, atol=1e-5)
    hidden = np.triu(found[-1], 1)
    assert (hidden == 0).all() if name == "gpt" else (hidden > 0).any()
