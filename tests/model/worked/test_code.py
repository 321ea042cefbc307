"""The lines of code of each worked step in every style, and each script, give the result on the page."""

import ast
import contextlib
import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from model.snippets import filled
from model.worked import examples
from model.worked.code import LONGEST, code_of_steps, given_to, own_forms, script, snippet
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


@pytest.fixture(autouse=True)
def in_float64() -> Iterator[None]:
    """As the scripts have it."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


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


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_the_shown_lines_and_the_scripts_give_every_result(example: Example) -> None:
    found = []
    for opened in (example, shaken(example)):
        names: dict[str, Any] = {"torch": torch, **inputs_of(opened)}
        for at, (step, forms) in enumerate(zip(opened.steps, opened.code, strict=True)):
            before = dict(names)
            for style in forms:
                known, place = dict(before), f"{step.title} ({style})"
                code, own = forms[style], np.atleast_2d(step.result)
                exec(code.text, known)
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
    without = {
        (example.name, step.title)
        for example in examples()
        for step, forms in zip(example.steps, example.code, strict=True)
        if not forms
    }
    assert without == WITHOUT_CODE


def test_no_lines_are_kept_for_a_step_that_is_gone() -> None:
    titles = {example.name: {step.title for step in example.steps} for example in examples()}
    for listed in (code_of_steps(), own_forms()):
        for name, steps in listed.items():
            assert set(steps) <= titles[name]


def forms(name: str, title: str) -> dict[str, str]:
    """The code of a step by style."""
    example = {one.name: one for one in examples()}[name]
    at = [step.title for step in example.steps].index(title)
    return {style: code.text for style, code in example.code[at].items()}


def test_products_sums_and_softmaxes_have_a_form_in_every_style_that_has_one() -> None:
    scores = forms("the-cat-sat", "Scores")
    assert scores["plain"] == "scores = query @ key.T"
    assert scores["einsum"] == 'scores = torch.einsum("qd,kd->qk", query, key)'
    assert scores["loops"].endswith("scores[i, j] += query[i, k] * key[j, k]")
    assert scores["torch"] == "scores = torch.mm(query, key.T)"
    weights = forms("the-cat-sat", "Weights")
    assert "torch.nn.MultiheadAttention(4, 1, bias=False)" in weights["torch"]
    assert "einsum" not in weights  # nothing is multiplied or summed: the line would be the same
    output = forms("ladder-causal-dropout", "Output in evaluation")
    assert "F.scaled_dot_product_attention(query, key, value, is_causal=True)" in output["torch"]


def test_attention_is_not_found_where_the_page_changed_the_weights() -> None:
    """After dropout the kernel, which knows nothing of it, would give another number."""
    in_training = forms("ladder-causal-dropout", "Output in training")
    assert in_training["torch"] == "output = torch.mm(dropped, value)"


def test_tensors_call_no_function_of_a_layer() -> None:
    left = {
        (example.name, step.title)
        for example in examples()
        for step, code in zip(example.steps, example.code, strict=True)
        if code and "F." in code["plain"].text
    }
    assert left == {
        ("padding-to-the-source", "The target filled up to the source's length"),
        ("relu-and-gelu", "Their slopes"),
        ("same-word-two-sentences", "Cosine similarity between the two sentences"),
    }


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


def test_a_remark_speaks_of_lines_that_are_shown() -> None:
    for example in examples():
        for forms in example.code:
            for code in forms.values():
                assert ("nn.MultiheadAttention" in code.remark) <= (
                    "MultiheadAttention(" in code.text
                )
