"""Every step of every worked example equals a second computation, with torch or with loops."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from model.worked import Example, examples
from tests.model.worked.recomputed import attention, design_choices, feed_forward, layers, models
from tests.model.worked.recomputed.steps import Inputs, Steps

WAYS: dict[str, Callable[[Inputs], Steps]] = {
    name.replace("_", "-"): way
    for module in (attention, layers, feed_forward, models, design_choices)
    for name, way in vars(module).items()
    if getattr(way, "__module__", "") == module.__name__
}


def shaken(example: Example) -> Example:
    """Every input that takes fractions moved a little, within its bounds."""
    generator = np.random.default_rng(7)
    values = {
        item.name: np.clip(
            item.value + 0.1 * generator.uniform(-1, 1, item.value.shape), item.lowest, item.highest
        )
        for item in example.inputs
        if not item.whole
    }
    return example.with_inputs(**values)


def assert_steps_are(example: Example, recomputed: Callable[[Inputs], Steps]) -> None:
    """Every step's result equals the second computation."""
    expected = recomputed({item.name: torch.tensor(item.value) for item in example.inputs})
    assert len(expected) == len(example.steps), "every step needs a second computation"
    for step, values in zip(example.steps, expected, strict=True):
        wanted = torch.as_tensor(values, dtype=torch.float64).numpy()
        assert step.result.shape == wanted.shape, f"{example.name}: {step.title}"
        np.testing.assert_allclose(
            step.result, wanted, rtol=1e-9, atol=1e-12, err_msg=f"{example.name}: {step.title}"
        )


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_every_step_equals_a_second_computation(example: Example) -> None:
    assert_steps_are(example, WAYS[example.name])
    assert_steps_are(shaken(example), WAYS[example.name])
