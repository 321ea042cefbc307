"""Decides between "=" and "≈": computes an equation again from the digits that it shows."""

import math
import re
from collections.abc import Callable, Mapping

import numpy as np

from model.arithmetic import Array64, attention, normalization
from model.nn import activations

_DECIMALS = 4  # zeros at the end are left out, so a result has at least so many
_BETWEEN = re.compile(r"=|(?<!\\)[:,]|\\quad|\\to\b|\\text\{[^{}]*\}")
_SPACE = re.compile(r"(?:\s|\\[ ,!;]|\\(?:left|right|allowbreak)(?![a-z]))+")
_TOKEN = re.compile(
    r"(?P<number>\d+(?:\{,\}\d{3})*(?:\.\d+)?)"
    r"|(?P<word>(?:\\mathrm\{[A-Za-z']+\}|\\?[A-Za-z]+)(?:_(?:\{(?:[^{}]|\{[^{}]*\})*\}|\w))?)"
    r"|(?P<sign>[-+/^(){}\[\],])"
)
_LITERAL = re.compile(
    r"-?(?:10\^\{-?\d+\}|\d+(?:\{,\}\d{3})*(?:\.(?P<decimals>\d+))?"
    r"(?:\s*\\times\s*10\^\{(?P<exponent>-?\d+)\})?)"
)
_CONSTANTS = {"e": math.e, r"\pi": math.pi, r"\infty": math.inf}
_FUNCTIONS: Mapping[str, Callable[..., Array64]] = {
    r"\ln": np.log,
    r"\sin": np.sin,
    r"\cos": np.cos,
    r"\max": np.maximum,
    r"\Phi": activations.normal_share,
    r"\mathrm{softmax}": attention.softmax,
    r"\mathrm{LN}": normalization.layer_norm,
    r"\mathrm{GELU}": activations.gelu,
    r"\mathrm{GELU}_{\tanh}": activations.gelu_tanh,
    r"\mathrm{GELU'}": activations.gelu_slope,
    r"\mathrm{ReLU}": activations.relu,
    r"\mathrm{SiLU}": activations.silu,
    r"\mathrm{ReLU'}": activations.relu_slope,
}


class _UnknownError(ValueError):
    """An expression with a part that has no value."""


def settled(line: str, matrices: Mapping[str, Array64] | None = None) -> str:
    r"""A line of LaTeX with "=" where the digits shown give the digits of the result, and "≈" elsewhere.

    1/3 = 0.3333, but 0.4444 + 0.2222 ≈ 0.6667. matrices: the values of names such as W_Q. An equation
    with any other name in it stays as it is.
    """
    pieces, signs = _taken_apart(line)
    for at, one in enumerate(signs):
        if one == "=":
            signs[at] = sign(pieces[at], pieces[at + 1], matrices)
    return "".join(piece + one for piece, one in zip(pieces, [*signs, ""], strict=True))


def sign(left: str, right: str, matrices: Mapping[str, Array64] | None = None) -> str:
    """The sign between two expressions, as in `settled`."""
    return "=" if _holds(left, right, matrices or {}) else r"\approx"


def _taken_apart(line: str) -> tuple[list[str], list[str]]:
    """The expressions of a line, and the signs and words between them."""
    pieces, signs, depth, start, at = [], [], 0, 0, 0
    while at < len(line):
        found = None if depth else _BETWEEN.match(line, at)
        if found:
            pieces.append(line[start:at])
            signs.append(found.group())
            start = at = found.end()
        else:
            depth += (line[at] in "([{") - (line[at] in ")]}")
            at += 1
    return [*pieces, line[start:]], signs


def _holds(left: str, right: str, matrices: Mapping[str, Array64]) -> bool:
    """Whether the left side gives the right one, to the last digit shown there."""
    try:
        with np.errstate(all="ignore"):
            first, second = _Evaluator(left, matrices).value(), _Evaluator(right, matrices).value()
    except _UnknownError:
        return True
    if np.shape(first) != np.shape(second):
        return False
    return bool(np.all(np.abs(first - second) < _precision(right, second)))


def _precision(right: str, value: Array64) -> Array64:
    """Half a unit of the last digit of each number of a result; almost nothing for a formula."""
    literals = list(_LITERAL.finditer(right))
    rest = _SPACE.sub("", _LITERAL.sub("", right))
    if rest.strip("[],") or len(literals) != np.size(value):
        return 1e-9 * np.maximum(np.abs(value), 1.0)
    places = [
        len(found["decimals"] or "") - int(found["exponent"])
        if found["exponent"]
        else max(len(found["decimals"] or ""), _DECIMALS)
        for found in literals
    ]
    return np.reshape(0.5 * 10.0 ** -np.array(places, dtype=np.float64), np.shape(value))


class _Evaluator:
    """Computes the value of an expression."""

    def __init__(self, text: str, matrices: Mapping[str, Array64]) -> None:
        self.tokens: list[tuple[str, str]] = []
        self.at, self.matrices = 0, matrices
        text = _SPACE.sub(" ", text).strip()
        while text:
            found = _TOKEN.match(text)
            if found is None:
                raise _UnknownError(text)
            self.tokens.append((str(found.lastgroup), found.group()))
            text = text[found.end() :].lstrip()

    def value(self) -> Array64:
        """The whole expression. Raises _UnknownError where a part of it has no value."""
        result = self._sum()
        if self.at < len(self.tokens):
            raise _UnknownError(self._next)
        return result

    @property
    def _next(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def _take(self, wanted: str = "") -> tuple[str, str]:
        if self.at >= len(self.tokens) or (wanted and self._next != wanted):
            raise _UnknownError(f"{wanted} is missing")
        self.at += 1
        return self.tokens[self.at - 1]

    def _sum(self) -> Array64:
        total = self._product()
        while self._next in ("+", "-"):
            sign = 1.0 if self._take()[1] == "+" else -1.0
            total = total + sign * self._product()
        return total

    def _product(self) -> Array64:
        result = self._factor()
        while self._next and self._next not in "+-)]},":
            if self._next == "/":
                self._take()
                result = result / self._factor()
                continue
            if self._next in (r"\cdot", r"\times"):
                self._take()
            factor = self._factor()
            result = result @ factor if np.ndim(factor) == 2 else result * factor
        return result

    def _factor(self) -> Array64:
        if self._next == "-":
            self._take()
            return -self._factor()
        base = self._part()
        if self._next != "^":
            return base
        self._take()
        return np.power(base, self._part())

    def _part(self) -> Array64:
        kind, text = self._take()
        if kind == "number":
            return np.array(float(text.replace("{,}", "")))
        if text in ("(", "{"):
            inside = self._sum()
            self._take(")" if text == "(" else "}")
            return inside
        if text == "[":
            return np.stack(self._listed("]"))
        return self._named(text)

    def _named(self, name: str) -> Array64:
        if name in (r"\frac", r"\tfrac"):
            return self._part() / self._part()
        if name == r"\sqrt":
            return np.sqrt(self._part())
        if name in _FUNCTIONS:
            if self._next != "(":
                return _FUNCTIONS[name](self._factor())
            self._take("(")
            return _FUNCTIONS[name](*self._listed(")"))
        if name in _CONSTANTS:
            return np.array(_CONSTANTS[name])
        matrix = self.matrices.get(re.sub(r"\\text|[{}]", "", name))
        if matrix is not None:
            return matrix
        raise _UnknownError(name)

    def _listed(self, end: str) -> list[Array64]:
        values = [self._sum()]
        while self._next == ",":
            self._take()
            values.append(self._sum())
        self._take(end)
        return values
