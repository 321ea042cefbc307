"""The equations beside the picture, read from the page and worked again from the digits that they print."""

import math
import re

from tests.browser.explorer.stage import Stage

_DRESS = re.compile(
    r"\\textcolor\{[^{}]*\}|\\color\{[^{}]*\}|\\mathbf|\\(?:begin|end)\{aligned\}|\\quad|\\\\|\\,|&|\s"
)
_LITERAL = re.compile(r"[{(]*-?\d+(?:\.(\d+))?(?:e(-?\d+))?[})]*")
_NAMES = {"sqrt": math.sqrt, "exp": math.exp, "inf": math.inf, "frac": lambda a: lambda b: a / b}


def written(stage: Stage) -> str:
    """The LaTeX of the chosen cell."""
    notes = stage.part("numbers-formula").locator("annotation[encoding='application/x-tex']")
    return notes.first.text_content() or ""


def claims(latex: str) -> list[tuple[str, str, bool]]:
    """The equations that can be worked, each with its sign and whether the digits on the left give those
    on the right. Fractions and sums of as many terms are worked part by part."""
    plain = _DRESS.sub("", re.sub(r"\{\\cdot\}10\^\{(-?\d+)\}", r"e\1", latex))
    pieces = re.split(r"(=|\\approx)", plain)
    found = []
    for left, sign, right in zip(pieces[::2], pieces[1::2], pieces[2::2], strict=False):
        pairs = [(one, other) for one, other in _parts(left, right) if "dots" not in one + other]
        if all(value(one) is not None and _LITERAL.fullmatch(other) for one, other in pairs):
            found.append((f"{left} {sign} {right}", sign, all(holds(*pair) for pair in pairs)))
    return found


def _parts(left: str, right: str) -> list[tuple[str, str]]:
    over = [re.fullmatch(r"\\frac\{(.*)\}\{(.*)\}", side) for side in (left, right)]
    if over[0] and over[1]:
        return list(zip(over[0].groups(), over[1].groups(), strict=True))
    terms = left.split("+"), right.split("+")
    return list(zip(*terms, strict=True)) if len(terms[0]) == len(terms[1]) else [(left, right)]


def value(text: str) -> float | None:
    """What an expression amounts to; None where it holds something that is no number."""
    if not re.fullmatch(r"(?:\\(?:frac|sqrt|cdot|infty)|e\^|[\de.(){}+-])+", text):
        return None
    python = text.replace("{", "(").replace("}", ")").replace("e^", "exp").replace(r"\infty", "inf")
    return float(eval(python.replace(r"\cdot", "*").replace("\\", ""), {}, _NAMES))


def holds(left: str, right: str) -> bool:
    """Whether the left side gives the right one to its last digit."""
    found = _LITERAL.fullmatch(right)
    worked, shown = value(left), value(right)
    assert found is not None
    assert worked is not None
    assert shown is not None
    half = 0.5 * 10 ** -(len(found[1] or "0000") - int(found[2] or 0))
    return abs(worked - shown) < half
