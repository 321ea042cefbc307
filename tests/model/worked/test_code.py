"""The lines of each worked step, in every style, compute its result in a second way: with PyTorch."""

import ast
import contextlib
import io
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from model.snippets import filled
from model.worked import Example, examples
from model.worked.code import _SUMMED, LONGEST, StepCode, given_to, script, snippet, written_forms

CLOSE = 1e-11
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


@pytest.fixture(autouse=True)
def in_float64() -> Iterator[None]:
    """As the scripts have it."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


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


def resized(example: Example) -> Iterator[Example]:
    """The example with each size that a reader may change: larger, or smaller where that does not fit."""
    for item in example.inputs:
        if item.whole and not item.value.ndim:
            for size in (2 * item.value, item.value + 1, item.value // 2, item.value - 1):
                with contextlib.suppress(ValueError):
                    yield example.with_inputs(**{item.name: size})
                    break


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
    with contextlib.redirect_stdout(out):
        exec(compile(text, "<script>", "exec"), {})
    return ast.literal_eval(out.getvalue())


def run(code: StepCode, names: dict[str, Any]) -> None:
    """Runs the lines, and reads every shape that stands beside one."""
    for node in ast.parse(code.text).body:
        parts: list[ast.expr] = []
        match node:
            case ast.Assign(value=ast.BinOp(left, ast.MatMult(), right)):
                parts = [left, right]
            case ast.Assign(value=ast.Call(ast.Attribute(attr="einsum"), [_, *operands])):
                parts = operands
        shapes = [np.shape(eval(ast.unparse(part), names)) for part in parts]
        exec(compile(ast.Module([node], []), "<lines>", "exec"), names)
        beside = code.lines[(node.end_lineno or 1) - 1].beside
        if not isinstance(node, ast.Assign) or not beside:
            continue
        written = [eval(one, names) for one in re.findall(r"\((?:[^()]|\(\w+\))*\)", beside)]
        first = node.targets[0]
        made = [one.id for one in getattr(first, "elts", [first])]  # type: ignore[attr-defined]
        for name in made:
            result = np.shape(names[name])
            wanted = [*shapes, result] if len(written) > 1 else [result]
            assert written in ([], wanted), (ast.unparse(node), beside)
            assert beside.endswith("one number") == (result == ()), (ast.unparse(node), beside)


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_the_shown_lines_and_the_scripts_give_every_result(example: Example) -> None:
    found = []
    for opened in (example, shaken(example), *resized(example)):
        names: dict[str, Any] = {"torch": torch, **inputs_of(opened)}
        for at, (step, forms) in enumerate(zip(opened.steps, opened.code, strict=True)):
            before = dict(names)
            for style in forms:
                known, place = dict(before), f"{step.title} ({style})"
                code, own = forms[style], np.atleast_2d(step.result)
                run(code, known)
                found.append((off(known[code.result], step.result), place))
                if style == "plain":
                    names = known
                shown = snippet(opened.code, opened.inputs, at, style)
                cell = {"row": own.shape[0] - 1, "column": own.shape[1] - 1}
                last = float(eval(filled(shown.result, cell), known))
                found.append((off(last, own[-1:, -1:]), f"cell of {place}"))
                if opened is example:
                    text = script(opened.code, opened.inputs, at, style)
                    assert len(text.splitlines()) <= LONGEST, text
                    found.append((off(printed(text), step.result), f"script of {place}"))
    worst, where = max(found)
    print(f"{example.name}: {len(found)} runs, the worst {where}: {worst:.1e}")
    assert all(gap <= CLOSE for gap, _ in found), where  # also where one is not a number


def test_every_step_that_computes_something_has_lines() -> None:
    steps = {(example.name, step.title) for example in examples() for step in example.steps}
    written = {(name, title) for name, titles in written_forms().items() for title in titles}
    assert steps - written == WITHOUT_CODE
    assert written <= steps
    for example in examples():
        known = {0.0, *(number for item in example.inputs for number in item.value.flat)}
        for step in example.steps:
            if (example.name, step.title) in WITHOUT_CODE:
                assert set(step.result.flat) <= known, step.title
            known |= set(step.result.flat)


def forms(name: str, title: str) -> dict[str, StepCode]:
    """The code of a step by style."""
    example = {one.name: one for one in examples()}[name]
    at = [step.title for step in example.steps].index(title)
    return dict(example.code[at])


def test_loops_follow_from_the_line_inside_and_the_shapes() -> None:
    scores = forms("the-cat-sat", "Scores")["loops"]
    assert ["row" in line.beside for line in scores.lines] == [False, True, False, False, False]
    assert [line.code for line in scores.lines] == [
        "scores = torch.zeros(3, 3)",
        "for i in range(3):",
        "    for j in range(3):",
        "        for k in range(4):",
        "            scores[i, j] += query[i, k] * key[j, k]",
    ]
    allowed = forms("look-ahead-mask", "Look-ahead mask")["loops"]
    assert "for i in range(length):" in allowed.text  # a size that the reader may change


def test_letters_of_einsums_and_the_module_are_explained() -> None:
    scores = forms("the-cat-sat", "Scores")
    assert scores["einsum"].remark == f"q query, d dimension, k key. {_SUMMED}"
    assert "einsum" not in forms("the-cat-sat", "Weights")  # nothing is multiplied or summed
    for example in examples():
        for step in example.code:
            for code in step.values():
                shown = "MultiheadAttention(" in code.text
                assert ("nn.MultiheadAttention" in code.remark) == shown


def test_what_the_lines_are_given_is_listed_with_its_shape() -> None:
    """Also what an earlier step made on the way to its result."""
    example = {one.name: one for one in examples()}["one-head-or-two"]
    at = [step.title for step in example.steps].index("Two heads: output through W_O")
    assert given_to(example.code, example.inputs, at, "plain") == {
        "o_matrix": "(4, 4)",
        "value": "(3, 4)",
        "first": "(3, 3)",
        "second": "(3, 3)",
    }
