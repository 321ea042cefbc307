"""Numbers, rows and products as LaTeX, with at most four decimals."""

import math
from collections.abc import Iterable

import numpy as np

from model.arithmetic import Array64

Value = float | Array64 | str
_OPERATORS = ("+", "-", r"\cdot", r"\times")
_LONGEST_ROW = 8
_LONGEST_SUM = 4  # of exponentials in a fraction, which no line may break


def number(value: float | Array64) -> str:
    """One number: whole ones in full, others to four decimals, extreme ones as powers of ten."""
    value = float(value)
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else (r"\infty" if value > 0 else r"-\infty")
    size = abs(value)
    if size < 5e-5 or size >= 1e12 or (value < 0 and size >= 1e6):
        mantissa, _, exponent = f"{value:.3e}".partition("e")
        mantissa = mantissa.rstrip("0").rstrip(".")
        power = f"10^{{{int(exponent)}}}"
        if mantissa in ("1", "-1"):
            return mantissa.replace("1", power)
        return rf"{mantissa} \times {power}"
    return f"{value:,.{_places(value)}f}".replace(",", "{,}")


def _places(value: float) -> int:
    """Up to four decimals, and more where fewer would make it look whole, as for 0.99995."""
    if abs(value - round(value)) < 1e-9:
        return 0
    for places in range(1, 9):
        rounded = round(value, places)
        if places >= 4 and rounded != round(value):
            return len(f"{rounded:.{places}f}".rstrip("0").partition(".")[2])
    return 0


def factor(value: float | Array64) -> str:
    """One number as a factor of a product: negative ones in brackets."""
    text = number(value)
    return f"({text})" if text.startswith("-") else text


def filled(line: str, *values: Value) -> str:
    """The line with one of the values for each "@": a number, a row of numbers, or words as they are.

    A negative number after an operator stands in brackets.
    """
    text, *rest = line.split("@")
    for value, after in zip(values, rest, strict=True):
        text += _written(value, after_operator=text.rstrip().endswith(_OPERATORS)) + after
    return text


def _written(value: Value, *, after_operator: bool) -> str:
    if isinstance(value, str):
        return value
    if np.ndim(value):
        return row(np.asarray(value))
    return factor(value) if after_operator else number(value)


def _listed(parts: Iterable[str], between: str, most: int = _LONGEST_ROW) -> str:
    texts = list(parts)
    if len(texts) > most:
        texts = [*texts[: most - 2], r"\ldots", texts[-1]]
    return between.join(texts)


def row(values: Array64) -> str:
    """A row of numbers in square brackets; a long one may go on in the next line."""
    return "[" + _listed((number(value) for value in np.ravel(values)), r",\allowbreak\ ") + "]"


def total(values: Array64) -> str:
    """Numbers with plus signs between them."""
    return _listed((factor(value) for value in np.ravel(values)), " + ")


def dot(first: Array64, second: Array64) -> str:
    """The products of two rows, term by term."""
    terms = (rf"{factor(a)}\cdot {factor(b)}" for a, b in zip(first, second, strict=True))
    return _listed(terms, " + ")


def powers(values: Array64) -> list[str]:
    """e to each number."""
    return [f"e^{{{number(value)}}}" for value in np.ravel(values)]


def softmax(scores: Array64, weights: Array64) -> str:
    """One row of scores put through the softmax, with the exponentials written out."""
    above, below = (_listed(powers(scores), between, _LONGEST_SUM) for between in (r",\ ", " + "))
    return rf"\frac{{[{above}]}}{{{below}}} = {row(weights)}"


def shape(lengths: Iterable[int]) -> str:
    """A shape such as 3 × 4."""
    return r" \times ".join(number(length) for length in lengths)
