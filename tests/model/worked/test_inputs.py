"""Editing inputs: every input counts, bad ones are refused with a sentence, nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

from model.worked import Example, Input, examples
from tests.model.worked.test_examples import assert_labelled

ALL = examples()
INPUTS = [(example, item) for example in ALL for item in example.inputs]
IDS = [f"{example.name}-{item.name}" for example, item in INPUTS]


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


@pytest.mark.parametrize(("example", "item"), INPUTS, ids=IDS)
def test_changing_an_input_changes_a_result(example: Example, item: Input) -> None:
    changed = another(example, item)
    assert differ(example, changed)
    assert all(np.isfinite(result).all() for result in results(changed))


@pytest.mark.parametrize(("example", "item"), INPUTS, ids=IDS)
def test_inputs_are_labelled_read_only_and_within_their_own_rule(example, item) -> None:
    assert item.label
    assert item.rule.endswith(".")
    assert not item.changed
    assert item.with_value(item.value).value is not None
    with pytest.raises(ValueError, match="read-only"):
        item.value[...] = 0
    assert_labelled(item.value, item)


@pytest.mark.parametrize(("example", "item"), INPUTS, ids=IDS)
@pytest.mark.parametrize("end", ["lowest", "highest"])
def test_the_ends_of_the_allowed_range_give_numbers_or_a_sentence(example, item, end) -> None:
    value = np.full(item.value.shape, getattr(item, end))
    try:
        outcome: Example | str = example.with_inputs(**{item.name: value})
    except ValueError as refusal:
        outcome = str(refusal)
    if isinstance(outcome, str):
        assert outcome.endswith(".")
    else:
        assert all(np.isfinite(result).all() for result in results(outcome))


@pytest.mark.parametrize(("example", "item"), INPUTS, ids=IDS)
def test_values_that_do_not_fit_are_refused_by_name(example: Example, item: Input) -> None:
    for bad in (
        np.zeros((*item.value.shape, 2)),
        np.full(item.value.shape, np.nan),
        np.full(item.value.shape, item.highest * 2 + 1),
        np.full(item.value.shape, np.inf),
        "three",
        None,
    ):
        with pytest.raises(ValueError, match=r"^" + item.label[:1]) as refusal:
            example.with_inputs(**{item.name: bad})
        assert str(refusal.value).startswith(item.label)
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
