"""The examples: names, labels, formulas and laws of their results; editing their inputs."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from model.worked import DOCUMENTS, Example, Input, Step, errata, examples
from tests.cases import cases

ALL = examples()

QUANTITIES = {"query", "key", "value", "score", "weight", "output", "other"}


def test_names_are_unique_slugs() -> None:
    names = [example.name for example in ALL]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in names)


def test_every_section_of_the_notes_has_an_example_in_order() -> None:
    sections = [int(example.section.removeprefix("§")) for example in ALL]
    assert sections == sorted(sections)
    assert set(sections) == set(range(1, 15))


def test_examples_are_made_once() -> None:
    assert examples() is examples()


@cases("example", ALL)
def test_an_example_says_what_it_is(example) -> None:
    assert example.title
    assert example.idea.endswith(".")
    assert example.steps
    titles = Counter(step.title for step in example.steps)
    assert max(titles.values()) == 1
    assert max(Counter(item.name for item in example.inputs).values()) == 1


def assert_labelled(values: np.ndarray, of: Input | Step) -> None:
    """Each axis has as many labels as it is long."""
    labels = (of.rows, of.columns)[2 - values.ndim :]
    assert tuple(len(axis or ()) for axis in labels) == values.shape


@cases("example", ALL)
def test_a_result_is_finite_read_only_and_labelled(example) -> None:
    for step in example.steps:
        assert step.result.dtype == np.float64
        assert step.result.ndim <= 2
        assert np.isfinite(step.result).all()
        assert step.quantity in QUANTITIES
        with pytest.raises(ValueError, match="read-only"):
            step.result[...] = 0
        assert_labelled(step.result, step)
        if step.blocked is not None:
            assert step.blocked.shape == step.result.shape
            assert step.blocked.dtype == np.bool_


@cases("example", ALL)
def test_formulas_are_latex_a_page_can_set(example) -> None:
    for step in example.steps:
        assert step.numbers
        for text in filter(None, (step.formula, step.numbers)):
            assert text.isascii(), text
            assert text.count("{") == text.count("}")
            assert len(re.findall(r"\\left\b", text)) == len(re.findall(r"\\right\b", text))
            assert text.count(r"\begin") == text.count(r"\end")
            assert "nan" not in text
            assert "$" not in text
            for words in re.findall(r"\\text\{([^{}]*)\}", text):
                assert not set(words) & set("_^&%#\\"), text


def test_weights_of_the_softmax_sum_to_one() -> None:
    """All weights of sections 1 and 6, but those under dropout."""
    for example in ALL:
        if example.section not in ("§1", "§6") or "dropout" in example.name:
            continue
        for step in example.steps:
            if step.quantity == "weight" and step.result.ndim == 2:
                np.testing.assert_allclose(step.result.sum(axis=-1), 1, rtol=1e-12)


def test_errata_belong_to_examples_and_stand_in_order() -> None:
    names = {example.name: example for example in ALL}
    for erratum in errata():
        assert erratum.example in names
        assert erratum.section == names[erratum.example].section
        assert erratum.why.endswith(".")
        assert erratum.notes_say != erratum.arithmetic_gives
        assert erratum.source.document in DOCUMENTS
    sections = [int(erratum.section.removeprefix("§")) for erratum in errata()]
    assert sections == sorted(sections)


def test_every_step_that_differs_is_an_erratum_and_says_both_figures() -> None:
    differing = {(e.name, s.title) for e in ALL for s in e.steps if s.agrees is False}
    assert {(erratum.example, erratum.step) for erratum in errata() if erratum.step} == differing


@cases("says, gives", [
    ("(The, Cat): 1", "(The, Cat): 0"),
    ("1.2669", "0.8446"),
    ("0.5762", "0.5761"),
    ("0.9995", "0.99995"),
    ("0.22313016014", "0.22313016015"),
    ("0.090376136", "0.09037587"),
    ("same original", "not x"),
    ("-1.36", "−1.3416"),
    ("(y2, y2): 1.9", "(y2, y2): 1.74"),
    ("Z = A Xᵀ", "A X"),
    ("Z = A Vᵀ", "A V"),
    ("q(i) · v(j)", "q(i) · k(j)"),
    ("N × d_k", "d_in × d_k"),
    ("maks", "mask"),
    ("forward stands inside __init__", "method"),
    ("pdf", "discrete"),
    ("embedding + W_Q", "embedding · W_Q"),
    ("Linear(d_head, d_model)", "Linear(d_model, d_head)"),
])  # fmt: skip
def test_the_errata_of_the_notes_are_listed(says, gives) -> None:
    assert any(
        says in erratum.notes_say and gives in erratum.arithmetic_gives for erratum in errata()
    )


def results(example: Example) -> list[np.ndarray]:
    return [step.result for step in example.steps]


def differ(first: Example, second: Example) -> bool:
    return len(first.steps) != len(second.steps) or any(
        not np.array_equal(one, other)
        for one, other in zip(results(first), results(second), strict=True)
    )


def another(example: Example, item: Input) -> Example:
    """The example with this one input moved, by the first small change that it allows."""
    moves = [item.value.copy() for _ in range(4)]
    for move, change in zip(moves, (1.0, -1.0, 0.1, -0.1), strict=True):
        move.flat[0] += change
    for value in (*moves, item.value * 2):
        try:
            return example.with_inputs(**{item.name: value})
        except ValueError:
            continue
    raise AssertionError(f"no change of {item.name} is allowed")


@cases("example", ALL)
def test_every_input_counts_within_its_own_rule(example) -> None:
    for item in example.inputs:
        changed = another(example, item)
        assert differ(example, changed)
        assert all(np.isfinite(result).all() for result in results(changed))
        assert item.label
        assert item.rule.endswith(".")
        assert not item.changed
        assert item.with_value(item.value).value is not None
        with pytest.raises(ValueError, match="read-only"):
            item.value[...] = 0
        assert_labelled(item.value, item)


@cases("example", ALL)
def test_the_ends_of_the_allowed_range_give_numbers_or_a_sentence(example) -> None:
    for item in example.inputs:
        for end in (item.lowest, item.highest):
            refusal = ""
            try:
                changed = example.with_inputs(**{item.name: np.full(item.value.shape, end)})
            except ValueError as error:
                refusal = str(error)
            assert refusal.endswith(".") or all(
                np.isfinite(result).all() for result in results(changed)
            )


@cases("example", ALL)
def test_values_that_do_not_fit_are_refused_by_name(example) -> None:
    for item in example.inputs:
        shape = item.value.shape
        beyond = np.full(shape, item.highest * 2 + 1)
        nowhere = (np.full(shape, np.nan), np.full(shape, np.inf), np.zeros((*shape, 2)))
        for bad in (*nowhere, beyond, "three", None):
            with pytest.raises(ValueError, match="^" + re.escape(item.label)) as refusal:
                example.with_inputs(**{item.name: bad})
            assert str(refusal.value).endswith(".")


def test_a_refusal_holds_the_numbers() -> None:
    example = named("dropout-by-hand")
    with pytest.raises(ValueError, match=r"Dropout p holds 1.5, which is outside 0 to 0.9\."):
        example.with_inputs(rate=1.5)
    with pytest.raises(ValueError, match=r"Values .* needs 10 numbers, not 3 numbers\."):
        example.with_inputs(values=[1, 2, 3])
    with pytest.raises(ValueError, match=r"Seed holds 2.5, which is not a whole number\."):
        example.with_inputs(seed=2.5)
    with pytest.raises(ValueError, match="no input 'colour'"):
        example.with_inputs(colour=1)
    with pytest.raises(ValueError, match="3 heads do not divide a width of 4"):
        named("four-classes-agree").with_inputs(heads=3)
    with pytest.raises(ValueError, match="hides all 4 keys"):
        named("fill-values").with_inputs(mask=[0, 0, 0, 0])


def named(name: str) -> Example:
    return next(example for example in ALL if example.name == name)


def test_changes_add_up_and_leave_the_original_alone() -> None:
    given = named("layer-norm-by-hand")
    before = [result.copy() for result in results(given)]
    changed = given.with_inputs(x=[1, 2, 3, 5]).with_inputs(beta=[1, 1, 1, 1])
    both = given.with_inputs(x=[1, 2, 3, 5], beta=[1, 1, 1, 1])
    assert not differ(changed, both)
    assert differ(changed, given.with_inputs(x=[1, 2, 3, 5]))
    assert all(np.array_equal(a, b) for a, b in zip(before, results(given), strict=True))
    assert not differ(changed.with_inputs(x=[2, 4, 6, 8], beta=[0, 0, 0, 0]), given)


def test_a_list_changed_afterwards_changes_no_example() -> None:
    x = np.array([1.0, 2.0, 3.0, 5.0])
    changed = named("layer-norm-by-hand").with_inputs(x=x)
    x[0] = 99
    assert changed.inputs[0].value[0] == 1


def test_a_mask_value_of_zero_lets_hidden_tokens_in() -> None:
    leaking = named("four-by-four-masked").with_inputs(mask_value=0)
    weights = next(step for step in leaking.steps if step.title == "Weights")
    assert weights.result[0, 3] > 0
    assert not weights.blocked[0, 3]


def step(example: str, title: str) -> Step:
    found = next(each for each in examples() if each.name == example)
    return next(each for each in found.steps if each.title == title)


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


def test_the_gradient_for_w_q_is_that_of_autograd() -> None:
    worked = next(one for one in examples() if one.name == "how-w-q-learns")
    given = {item.name: item.value for item in worked.inputs}
    matrix = torch.tensor(given["matrix"], requires_grad=True)
    scores = torch.tensor(given["keys"]) @ (torch.tensor(given["token"]) @ matrix) / 2**0.5
    loss = F.cross_entropy(scores, torch.tensor(int(given["target"])))
    loss.backward()
    found = step("how-w-q-learns", "Gradient for W_Q").result
    np.testing.assert_allclose(found, matrix.grad, atol=1e-12)
    before, after = step("how-w-q-learns", "Loss after one step").result
    assert before == pytest.approx(loss.item())
    assert after < before


def test_the_same_word_is_no_longer_the_same_after_attention() -> None:
    before, after = step(
        "same-word-two-sentences", "Cosine similarity between the two sentences"
    ).result
    assert before == pytest.approx(1)
    assert after < 0.9


def test_with_positions_word_order_counts() -> None:
    assert np.abs(step("lion-kills-tiger", "Difference with positions").result).max() > 0.1
