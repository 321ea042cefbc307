"""Lines of LaTeX: values put in, and every equation worked again from the digits that a reader sees.

The formulas are read by rewriting them as Python and evaluating that with torch, not by the
product's own reader.
"""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch
from torch.nn.functional import gelu, layer_norm

from model.worked import Example, examples
from model.worked.equality import settled
from model.worked.latex import filled
from tests.cases import cases
from tests.model.worked.test_code import shaken


def test_values_take_their_places_and_negative_ones_after_an_operator_stand_in_brackets() -> None:
    assert filled("@ + @ = @", 1, -2, -1) == "1 + (-2) = -1"
    assert filled(r"@ \cdot @ - @ = @", -2.0, -0.5, -3, 4) == r"-2 \cdot (-0.5) - (-3) = 4"
    assert filled(r"\frac{@}{@}", -1, 3) == r"\frac{-1}{3}"


def test_a_row_is_listed_and_words_are_left_as_they_are() -> None:
    line = filled(r"\text{@: } 2\,@", "The", np.array([1.0, -0.5]))
    assert line == r"\text{The: } 2\,[1,\allowbreak\ -0.5]"


@cases("values", [(), (1,), (1, 2, 3)])
def test_as_many_values_as_places_are_needed(values) -> None:
    with pytest.raises(ValueError, match="argument"):
        filled("@ = @", *values)


NUMBER = r"-?\d+(?:\.\d+)?"

WORDS = {
    "Phi": lambda x: torch.special.ndtr(torch.tensor(x)).item(),
    "GELU": lambda x: gelu(torch.tensor(x, dtype=torch.float64)).item(),
    "GELU_tanh": lambda x: gelu(
        torch.tensor(x, dtype=torch.float64), approximate="tanh"
    ).item(),
    "GELU_slope": lambda x: torch.special.ndtr(torch.tensor(x, dtype=torch.float64)).item()
    + x * math.exp(-x * x / 2) / math.sqrt(2 * math.pi),
    "ReLU_slope": lambda x: float(x > 0),
    "LN": lambda x: layer_norm(torch.tensor(x), (len(x),)).numpy(),
    "softmax": lambda x: torch.softmax(torch.tensor(x), -1).numpy(),
    "row": lambda *parts: np.array(parts, dtype=np.float64),
    "exp": np.exp,
    "sqrt": math.sqrt,
    "ln": math.log,
    "sin": math.sin,
    "cos": math.cos,
    "max": max,
    "pi": math.pi,
    "inf": math.inf,
}  # fmt: skip

INNER = r"\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}"  # what stands in braces, two deep

REWRITTEN = (
    (r"\{,\}", ""),
    (r"\\mathrm\{(GELU|ReLU)'\}", r"\1_slope"),
    (r"\\mathrm\{GELU\}_\{\\tanh\}", "GELU_tanh"),
    (r"\\mathrm\{(\w+)\}", r"\1"),
    (r"W_\{\\text\{(\w+)\}\}", r"W_\1"),
    (r"\\(?:left|right|allowbreak)(?![a-z])", ""),
    (r"\\[,! ;]", " "),
    (r"(?<![\w.])e\^" + INNER, r" exp(\1)"),
    (r"\\t?frac" + INNER + INNER, r"((\1)/(\2))"),
    (r"\\sqrt" + INNER, r"sqrt(\1)"),
    (r"\^" + INNER, r"**(\1)"),
    (r"\^(\d)", r"**\1"),
    (r"\\(cdot|times)", "*"),
    (r"\\infty", "inf"),
    (r"\\ln\s*([\d.]+)", r"ln(\1)"),
    (r"\\(pi|sin|cos|ln|max|Phi)\b", r"\1"),
)


def value_of(text: str, matrices: dict[str, np.ndarray]) -> object:
    """The number or row that an expression shows; None where a part of it shows no number."""
    for _ in range(4):  # fractions stand in powers, and powers in fractions
        for pattern, put in REWRITTEN:
            text = re.sub(pattern, put, text)
    text = re.sub(r"(?<![\w\]])\[", "row(", text).replace("]", ")")
    text = re.sub(r"(?<=[\d)])\s*(?=row\()", "*", text)
    text = re.sub(r"(?<=\d)\s+(?=\()", "*", text)
    text = re.sub(r"\)\s*(W_\w+|E)\b", r") @ \1", text)
    known = WORDS | matrices
    if not text.strip() or set(re.findall(r"\\?[A-Za-z_]\w*", text)) - known.keys():
        return None
    try:
        value = eval(text, {"__builtins__": {}}, known)  # the formulas are the product's own
    except (SyntaxError, TypeError, ZeroDivisionError):
        return None
    return None if callable(value) else value


def equations(line: str) -> list[tuple[str, str, str]]:
    """Left side, sign and right side of each equation in a line."""
    depth, parts, now = 0, [], ""
    for piece in re.findall(r"\\[a-z]+|\\.|.", line, re.S):
        depth += (piece in "([{") - (piece in ")]}")
        if depth == 0 and piece in ("=", r"\approx", ",", ":", r"\quad", r"\to"):
            parts, now = [*parts, now, piece], ""
        else:
            now += piece
    parts = [re.sub(r"^\s*(\\text\{[^{}]*\}\s*)+", "", part) for part in [*parts, now]]
    return [
        (parts[at - 1], parts[at], parts[at + 1])
        for at in range(1, len(parts), 2)
        if parts[at] in ("=", r"\approx")
    ]


def holds(left: object, right: str) -> bool | None:
    """Whether the value on the left has the digits on the right; None for a formula there.

    Zeros at the end are left out: 0.6 stands for 0.6000.
    """
    text = re.sub(r"\\[, ]|\{,\}|\\allowbreak(?![a-z])", "", right)
    if re.sub(NUMBER + r"|[\s\[\],]", "", text):
        return None
    shown, values = re.findall(NUMBER, text), np.atleast_1d(left)
    return len(shown) == len(values) and all(
        abs(value - float(digits)) < 0.5 * 10.0 ** -max(len(digits.partition(".")[2]), 4)
        for value, digits in zip(values, shown, strict=True)
    )


def worked_again(example: Example) -> list[tuple[str, str, bool]]:
    """Each equation that can be worked again: its line, its sign, and whether the digits fit."""
    matrices = {item.symbol: item.value for item in example.inputs if item.value.ndim == 2}
    found = []
    for step in example.steps:
        for left, sign, right in equations(step.numbers or ""):
            value = value_of(left, matrices)
            fits = None if value is None else holds(value, right)
            if fits is not None:
                found.append((f"{step.title}: {step.numbers}", sign, fits))
    return found


def test_an_equals_sign_holds_to_the_last_digit_shown(subtests: pytest.Subtests) -> None:
    for example in examples():
        with subtests.test(example=example.name):
            for one in (example, shaken(example)):
                assert [
                    line for line, sign, fits in worked_again(one) if sign == "=" and not fits
                ] == []


def test_most_equations_are_worked_again_and_those_about_equal_are_not_equal() -> None:
    found = [one for example in examples() for one in worked_again(example)]
    assert len(found) > 140
    about = [(line, fits) for line, sign, fits in found if sign == r"\approx"]
    assert len(about) > 15
    assert [line for line, fits in about if fits] == []


@cases("line, sign", [
    (r"\frac{1}{3} = 0.3333", "="),
    (r"0.4444 + 0.2222 + 0 = 0.6667", r"\approx"),
    (r"\frac{-7.7168}{5.6569} = -1.3642", r"\approx"),
    (r"\text{The: } 0.3 + 0.38 + 0.32 = 1", "="),
    (r"0.4711 + 0.2645 + 0.2645 = 1", r"\approx"),
    (r"e^{1.53} = 4.6182", "="),
    (r"e^{1.53} = 4.64", r"\approx"),
    (r"0.5\,[1,\ 0.5] + 0.5\,[0,\ 1] = [0.5,\ 0.75]", "="),
    (r"0.5\,[1,\ 0.5] + 0.5\,[0,\ 1] = [0.5,\ 0.7501]", r"\approx"),
    (r"[1,\ 2]\,W_Q = [1,\ 2]", "="),
    (r"[1,\ 2]\,W_Q = [2,\ 1]", r"\approx"),
    (r"[1,\allowbreak\ 2]\,W_Q = [1,\allowbreak\ 2]", "="),
    (r"[1,\allowbreak\ 2]\,W_Q = [2,\allowbreak\ 1]", r"\approx"),
    (r"q = [1,\ 2]\,W_R = [2,\ 1]", "="),
    (r"[1,\ 2] + [1,\ 2] = 6", r"\approx"),
    (r"e^{-\infty} + \ldots = 0", "="),
    (r"3 \cdot 10^{-7} = 3 \times 10^{-7}", "="),
    (r"3 \cdot 10^{-7} = 3.1 \times 10^{-7}", r"\approx"),
    (r"50{,}257 \cdot 768 = 38{,}597{,}376", "="),
    (r"\sin(0.9) = \sin(\pi - 0.9)", "="),
])  # fmt: skip
def test_the_sign_follows_the_digits(line, sign) -> None:
    assert settled(line, {"W_Q": np.eye(2)}) == line.replace("=", sign)
