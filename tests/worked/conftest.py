"""Examples by name, as given and with their inputs shaken, for comparison with a second computation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from model.worked import Example, examples

Recomputed = Callable[[dict[str, torch.Tensor]], list[torch.Tensor]]


def named(name: str) -> Example:
    return next(example for example in examples() if example.name == name)


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


def assert_steps_are(example: Example, recomputed: Recomputed) -> None:
    """Every step's result equals the second computation."""
    expected = recomputed({item.name: torch.tensor(item.value) for item in example.inputs})
    assert len(expected) == len(example.steps), "every step needs a second computation"
    for step, values in zip(example.steps, expected, strict=True):
        wanted = torch.as_tensor(values, dtype=torch.float64).numpy()
        assert step.result.shape == wanted.shape, f"{example.name}: {step.title}"
        np.testing.assert_allclose(
            step.result, wanted, rtol=1e-9, atol=1e-12, err_msg=f"{example.name}: {step.title}"
        )


@pytest.fixture
def check() -> Callable[[str, Recomputed], None]:
    """Compare an example with a second computation, as given and with its inputs shaken."""

    def compare(name: str, recomputed: Recomputed) -> None:
        assert_steps_are(named(name), recomputed)
        assert_steps_are(shaken(named(name)), recomputed)

    return compare


@pytest.fixture
def names_of() -> Callable[[range], set[str]]:
    """The names of all examples of these sections."""

    def names(sections: range) -> set[str]:
        return {example.name for example in examples() if int(example.section[1:]) in sections}

    return names
