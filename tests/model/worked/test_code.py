"""The lines of code of each worked step, and each script made of them, give the result on the page."""

import ast
import contextlib
import io
from typing import Any

import numpy as np
import pytest
import torch

from model.worked import examples
from model.worked.code import LONGEST, code_of_steps, result_of, script, written
from model.worked.example import Example
from tests.model.worked.test_recomputed import shaken

CLOSE = 1e-5
WITHOUT_CODE = {  # given, or taken over from another step
    ("the-cat-sat", "The rows that enter the softmax"),
    ("padding-mask", "Token ids"),
    ("combined-mask", "Token ids"),
    ("two-padding-masks", "Token ids"),
    ("padding-to-the-source", "The source"),
    ("words-and-tokens", "Words for one token"),
    ("dropout-by-hand", "In evaluation"),
    ("gpt-2-parameters", "The configuration"),
    ("encoder-of-the-paper", "The paper's sizes"),
}


def inputs_of(example: Example) -> dict[str, Any]:
    """The inputs as a script has them."""
    return {
        item.name: torch.tensor(item.value.astype(np.int64 if item.whole else np.float64))
        if item.value.ndim
        else item.argument
        for item in example.inputs
    }


def off(made: Any, own: np.ndarray) -> float:
    """The largest difference, relative to the largest number where that is above 1."""
    numbers = np.asarray(made, dtype=np.float64).reshape(own.shape)
    return float(np.abs(numbers - own).max()) / max(1.0, float(np.abs(own).max()))


def printed(text: str) -> Any:
    """What a script prints."""
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(text, "<script>", "exec"), {})
    finally:
        torch.set_default_dtype(torch.float32)
    return ast.literal_eval(out.getvalue())


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_the_shown_lines_and_the_scripts_give_every_result(
    example: Example, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for opened in (example, shaken(example)):
        names: dict[str, Any] = {"torch": torch, **inputs_of(opened)}
        for position, step in enumerate(opened.steps):
            if step.code is None:
                continue
            torch.set_default_dtype(torch.float64)
            try:
                exec(written(step), names)
            finally:
                torch.set_default_dtype(torch.float32)
            text = script(opened.steps, opened.inputs, position)
            assert len(text.splitlines()) <= LONGEST, text
            found.append((off(names[result_of(step.code)], step.result), step.title))
            if opened is example:
                found.append((off(printed(text), step.result), f"script of {step.title}"))
    worst, where = max(found)
    print(f"{example.name}: {len(found)} runs, the worst {where}: {worst:.1e}")
    assert all(gap <= CLOSE for gap, _ in found), where  # also where one is not a number


def test_every_step_that_computes_something_has_lines() -> None:
    without = {
        (example.name, step.title)
        for example in examples()
        for step in example.steps
        if step.code is None
    }
    assert without == WITHOUT_CODE


def test_no_lines_are_kept_for_a_step_that_is_gone() -> None:
    titles = {example.name: {step.title for step in example.steps} for example in examples()}
    for name, steps in code_of_steps().items():
        assert set(steps) <= titles[name]
