"""Results of the steps, held against figures worked out apart from the product."""

from __future__ import annotations

import numpy as np
import pytest

from model.worked import Step, examples


def step(example: str, title: str) -> Step:
    found = next(each for each in examples() if each.name == example)
    return next(each for each in found.steps if each.title == title)


THIRD = 1 / 3
FIGURES = [
    ("the-cat-sat", "Scores", [[2, 0, 2], [0, 2, 2], [2, 2, 4]], 0),
    ("the-cat-sat", "Scaled scores", [[1, 0, 1], [0, 1, 1], [1, 1, 2]], 0),
    (
        "the-cat-sat",
        "Weights",
        [[0.4223, 0.1554, 0.4223], [0.1554, 0.4223, 0.4223], [0.2119, 0.2119, 0.5761]],
        4,
    ),
    ("the-cat-sat", "Output", [[0.8446, 0.5777] * 2, [0.5777, 0.8446] * 2, [0.7881] * 4], 4),
    (
        "one-hot-picture",
        "Output",
        [[0.4711, 0.2645, 0.2645], [0.2645, 0.4711, 0.2645], [0.2645, 0.2645, 0.4711]],
        4,
    ),
    ("one-hot-picture", "Sum of each output row", [1, 1, 1], 12),
    ("two-keys-scaled", "Scores", [[6, 4]], 0),
    ("two-keys-scaled", "Weights without scaling", [[0.8808, 0.1192]], 4),
    ("two-keys-scaled", "Scaled scores", [[3, 2]], 0),
    ("two-keys-scaled", "Weights with scaling", [[0.7311, 0.2689]], 4),
    ("softmax-of-ten-and-one", "Weights", [0.9999, 0.0001], 4),
    ("softmax-of-three", "Exponentials", [2.4596, 0.2231, 24.5325], 4),
    ("softmax-of-three", "Their sum", 27.2153, 4),
    ("softmax-of-three", "Weights", [0.0904, 0.0082, 0.9014], 4),
    ("twice-the-score", "Weights", [0.1142, 0.8438, 0.0420], 4),
    ("twice-the-score", "Ratio of the scores", 2, 0),
    ("twice-the-score", "Ratio of the weights", 7.39, 2),
    ("weighted-sum-of-cat", "Shares in percent", [30, 38, 32], 10),
    ("padding-mask", "Padding mask of each sequence", [[1, 1, 1], [1, 1, 0]], 0),
    (
        "padding-mask",
        "Second sequence, queries and keys masked",
        [[1, 1, 0], [1, 1, 0], [0, 0, 0]],
        0,
    ),
    ("look-ahead-mask", "Look-ahead mask", [[1, 0, 0], [1, 1, 0], [1, 1, 1]], 0),
    ("combined-mask", "Their product", [[1, 0, 0], [1, 1, 0], [0, 0, 0]], 0),
    (
        "four-by-four-masked",
        "Scores",
        [[0.30, 0.70, 1.10, 0], [0.70, 1.74, 2.78, 0], [1.10, 2.78, 4.46, 0], [0, 0, 0, 0]],
        12,
    ),
    (
        "four-by-four-masked",
        "Scaled scores",
        [[0.15, 0.35, 0.55, 0], [0.35, 0.87, 1.39, 0], [0.55, 1.39, 2.23, 0], [0, 0, 0, 0]],
        12,
    ),
    (
        "four-by-four-masked",
        "Mask: look-ahead times padded keys",
        [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 0]],
        0,
    ),
    (
        "four-by-four-masked",
        "Weights",
        [
            [1, 0, 0, 0],
            [0.3729, 0.6271, 0, 0],
            [0.1152, 0.2668, 0.6180, 0],
            [THIRD, THIRD, THIRD, 0],
        ],
        4,
    ),
    (
        "four-by-four-masked",
        "Weights without scaling, for comparison",
        [
            [1, 0, 0, 0],
            [0.2611, 0.7389, 0, 0],
            [0.0284, 0.1526, 0.8189, 0],
            [THIRD, THIRD, THIRD, 0],
        ],
        4,
    ),
    (
        "four-by-four-masked",
        "Output",
        [
            [0.1, 0.2, 0.3, 0.4],
            [0.3509, 0.4509, 0.5509, 0.6509],
            [0.7011, 0.8011, 0.9011, 1.0011],
            [0.5, 0.6, 0.7, 0.8],
        ],
        4,
    ),
    ("fill-values", "Weights with −∞", [0.7685, 0.2315, 0, 0], 4),
    ("fully-masked-row", "Weights: a uniform row", [THIRD] * 3, 12),
    ("fully-masked-row", "Weights with −∞, as this app defines them", [0, 0, 0], 0),
    ("two-routes-to-causal", "Route 1 minus route 2", np.zeros((3, 3)), 12),
    ("four-classes-agree", "Largest difference between any two", np.zeros((4, 4)), 12),
    ("head-widths", "Width of each head", [64, 32], 0),
    ("head-widths", "Columns of the first head", [0, 31], 0),
    ("shape-walk-c", "Cut into heads", [32, 16, 8, 64], 0),
    ("shape-walk-c", "Scores", [32, 8, 16, 16], 0),
    ("shape-walk-c", "After W_O", [32, 16, 512], 0),
    ("shape-walk-d", "Heads first", [2, 8, 4, 64], 0),
    ("shape-walk-d", "Scores", [2, 8, 4, 4], 0),
    ("induction-circuit", "Word by word, through both heads", 6 * np.eye(4), 0),
    ("induction-circuit", "Composition of the two heads", [0, 0.5, 0], 12),
    ("projection-parameters", "All four together", 4 * 512**2, 0),
    (
        "sinusoidal-table",
        "Positional encoding",
        [[0, 1, 0, 1], [0.8415, 0.5403, 0.0100, 0.99995], [0.9093, -0.4161, 0.0200, 0.9998]],
        4,
    ),
    (
        "embedding-plus-position",
        "Embedding plus position",
        [[0.1, 1.2, 0.3, 1.4], [1.3415, 1.1403, 0.71, 1.79995], [1.8093, 0.5839, 1.12, 2.1998]],
        4,
    ),
    ("lion-kills-tiger", "Difference word by word", np.zeros((3, 4)), 12),
    ("layer-norm-by-hand", "Mean", 5, 0),
    ("layer-norm-by-hand", "Variance", 5, 0),
    ("layer-norm-by-hand", "Its root", 2.2361, 4),
    ("layer-norm-by-hand", "Normalized", [-1.3416, -0.4472, 0.4472, 1.3416], 4),
    ("biased-and-unbiased", "Variance", [5, 6.6667], 4),
    (
        "biased-and-unbiased",
        "How much smaller the unbiased result is, in percent",
        [13.4, 0.1],
        1,
    ),
    (
        "houses",
        "Batch norm: each column",
        [[-1.1112, -1.3363], [-0.2020, 0.2673], [1.3132, 1.0690]],
        4,
    ),
    ("houses", "Layer norm: each row", [[1, -1]] * 3, 4),
    ("gelu-minimum", "Where the slope is 0", -0.7518, 4),
    ("gelu-minimum", "GELU there", -0.17, 2),
    ("gpt-2-parameters", "With a separate output matrix", 163_009_536, 0),
    ("gpt-2-parameters", "With the output tied to the token embedding", 124_412_160, 0),
    ("gpt-2-parameters", "GPT-2 itself: tied, with biases on Q, K and V", 124_439_808, 0),
    ("encoder-of-the-paper", "Width of each head", 64, 0),
    ("most-probable-word", "One-hot target", [0, 1, 0, 0, 0, 0], 0),
]


@pytest.mark.parametrize(
    ("example", "title", "figures", "places"), FIGURES, ids=lambda part: str(part)[:40]
)
def test_the_arithmetic_gives_the_figure(example, title, figures, places) -> None:
    result = step(example, title).result
    assert result.shape == np.shape(figures)
    np.testing.assert_allclose(result, figures, rtol=0, atol=0.5 * 10.0**-places + 1e-12)


def test_the_unbiased_norm_of_two_to_eight_starts_at_minus_1_1619() -> None:
    both = step("biased-and-unbiased", "Normalized").result
    assert both[1, 0] == pytest.approx(-1.1619, abs=5e-5)


def test_the_third_cosine_of_position_one_is_not_what_the_notes_print() -> None:
    value = step("sinusoidal-table", "Positional encoding").result[1, 3]
    assert value == pytest.approx(0.99995, abs=5e-6)


def test_the_unscaled_entropy_falls_with_width_and_the_scaled_one_does_not() -> None:
    entropy = step("variance-of-a-dot-product", "Entropy of the weights, in nats").result
    largest = step("variance-of-a-dot-product", "Largest weight, on average").result
    assert np.all(np.diff(entropy[0]) < 0)
    assert np.all(np.diff(largest[0]) > 0)
    assert np.ptp(entropy[1]) < 0.1
    assert np.ptp(largest[1]) < 0.05


def test_the_sampled_variance_follows_the_law() -> None:
    law = step("variance-of-a-dot-product", "Variance the law gives").result
    sampled = step("variance-of-a-dot-product", "Variance of the sampled scores").result
    np.testing.assert_allclose(sampled, law, rtol=0.1)


def test_the_average_gradient_lies_in_the_notes_range_only_for_few_keys() -> None:
    means = step("average-gradient", "Average slope for random scores").result
    inside = {tuple(cell) for cell in np.argwhere((means >= 0.1) & (means <= 0.15)).tolist()}
    # rows: 2, 3, 4, 6, 8, 16, 64 keys; columns: spread 0.5, 1, 2, 4
    assert inside == {(0, 2), (1, 2), (2, 2), (3, 0), (3, 1), (4, 0)}


def test_shortcuts_keep_the_gradient_that_a_plain_stack_loses() -> None:
    sizes = step("residual-gradient", "Size of the gradient at each layer").result
    assert sizes[0, 0] < 1e-6 * sizes[0, -1]
    assert sizes[1, 0] > sizes[1, -1]


def test_padding_changes_the_batch_statistics_and_no_layer_norm() -> None:
    plain = step("houses", "Layer norm: each row").result
    padded = step("houses", "Layer norm with the padding").result
    np.testing.assert_array_equal(padded[:3], plain)
    before = step("houses", "Mean and variance of each column").result
    after = step("houses", "Mean and variance of each column with a row of padding").result
    assert not np.allclose(before, after)


def test_dropout_drops_one_value_in_ten_and_divides_the_rest_by_nine_tenths() -> None:
    kept, after = step("dropout-by-hand", "Kept").result, step("dropout-by-hand", "In training")
    values = step("dropout-by-hand", "In evaluation").result
    assert kept.sum() == 9
    np.testing.assert_allclose(after.result, np.where(kept > 0, values / 0.9, 0.0))


def test_neither_form_of_dropout_on_weights_keeps_all_rows_at_one() -> None:
    for example, title in (
        ("dropout-on-weights", "Sum of each row"),
        ("ladder-causal-dropout", "Their row sums"),
    ):
        sums = step(example, title).result
        assert not np.allclose(sums, 1)


def test_back_propagation_lowers_the_loss() -> None:
    before, after = step("most-probable-word", "Loss after one step on the logits").result
    assert after < before


def test_the_same_word_is_no_longer_the_same_after_attention() -> None:
    before, after = step(
        "same-word-two-sentences", "Cosine similarity between the two sentences"
    ).result
    assert before == pytest.approx(1)
    assert after < 0.9


def test_with_positions_word_order_counts() -> None:
    assert np.abs(step("lion-kills-tiger", "Difference with positions").result).max() > 0.1
