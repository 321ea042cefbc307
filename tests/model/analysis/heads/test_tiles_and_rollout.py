"""Small pictures of large weights, and weights put together."""

import numpy as np
import pytest

from model import Trace
from model.analysis.heads.statistics import families, mean_weights, rolled, rollout, tiles
from model.trace.blocks import block_of, largest_of_blocks
from tests.cases import cases
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
        monkeypatch.setattr("model.trace.blocks.TOGETHER", 1)
        np.testing.assert_allclose(tiles(trace, family, most=5).weights, found.weights, atol=1e-6)
        monkeypatch.undo()


def test_the_last_block_may_be_smaller() -> None:
    weights = np.arange(15, dtype=np.float32).reshape(3, 5)
    np.testing.assert_array_equal(largest_of_blocks(weights, (2, 2)), [[6, 8, 9], [11, 13, 14]])


def test_mean_weights_are_rows_that_sum_to_one(trace: Trace) -> None:
    for family in families(trace):
        first = family.members(trace)[0]
        mean = mean_weights([first])
        expected = sum(first.weights(head) for head in range(first.heads)) / first.heads
        np.testing.assert_allclose(mean.cells, expected, atol=1e-6)
        np.testing.assert_allclose(mean.of_queries, 1, atol=1e-5)
        np.testing.assert_allclose(mean.of_keys, expected.mean(0), atol=1e-6)


def test_mean_weights_of_a_long_text_are_the_largest_of_each_block(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = families(trace)[0].members(trace)
    whole = mean_weights(layers)
    monkeypatch.setattr("model.trace.blocks.CELLS", 9)
    monkeypatch.setattr("model.trace.blocks.TOGETHER", 1)
    found = mean_weights(layers)
    assert found.block == block_of(*whole.cells.shape) != (1, 1)
    np.testing.assert_allclose(found.cells, largest_of_blocks(whole.cells, found.block), atol=1e-6)
    np.testing.assert_array_equal(found.masked, ~largest_of_blocks(~whole.masked, found.block))
    np.testing.assert_allclose(found.of_keys, whole.of_keys, atol=1e-6)
    np.testing.assert_allclose(found.of_queries, whole.of_queries, atol=1e-6)


def test_rollout_multiplies_half_stayed_weights_from_the_first_layer_up() -> None:
    first = np.array([[1, 0], [0.5, 0.5]], np.float32)
    second = np.array([[1, 0], [1, 0]], np.float32)
    below = rollout([first])
    np.testing.assert_allclose(below, [[1, 0], [0.25, 0.75]])
    np.testing.assert_allclose(rollout([first, second]), np.array([[1, 0], [0.5, 0.5]]) @ below)
    np.testing.assert_allclose(rollout([np.eye(3, dtype=np.float32)] * 4), np.eye(3))


@cases("name", ["gpt", "bert"])
def test_rollout_rows_sum_to_one_and_see_no_future_that_the_mask_hides(name) -> None:
    model = loaded(name)
    trace = model.trace(sentence(model))
    found = rolled(families(trace)[0].members(trace))
    np.testing.assert_allclose(found.sum(-1), 1, atol=1e-5)
    hidden = np.triu(found, 1)
    assert (hidden == 0).all() if name == "gpt" else (hidden > 0).any()
