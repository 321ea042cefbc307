"""Numbers, equations and superlatives as real pages print them, read back from every view."""

import json
import math
import re
from collections.abc import Iterator
from pathlib import PurePath

import pytest
from streamlit.testing.v1 import AppTest

from tests.hostile.laws import strings
from tests.model.worked.test_equality import equations, holds, value_of
from tests.pages.reading import numbers, visit
from tools.words import shows, texts
from viz.state.menu import PAGES

SENTENCES = ("The animal did not cross the street because it was too tired.", "a")
READING = [PurePath(page.file).stem for page in PAGES if page.reads]
WORKED = ("layer_norm", "feed_forward", "prediction", "attention", "all_heads")
HYPHEN = re.compile(r"(?:^|[\s(*|=×·+])-\d")
NEGATIVE_ZERO = re.compile(r"[-−]0(?:\.0+)?(?![\d.,])")
COMPARED = re.compile(
    r"(?:any other|at another|an earlier) token|(?:differ most on|(?:attends|falls|counts) most)|, most at"
)
_DRESS = re.compile(r"\*\*|\\(?=[^a-z])|\([a-z ]+\)|\b(?:Listed|other)\b")
_NUMBER = r"[-+]?√?\d[\d,]*(?:\.\d+)?"
_SIDE = rf"{_NUMBER}(?:\s*[·×÷/+-]\s*{_NUMBER})*"
_EQUATION = re.compile(rf"({_SIDE})\s*([=≈])\s*({_SIDE})")


def views(page: str, text: str) -> Iterator[AppTest]:
    """The page as it opens, then each of its views."""
    app = visit(page, text=text, model="house-gpt")
    yield app
    for option in [option for control in shows(app) for option in control.options]:
        (control,) = shows(app)  # as drawn now: an older one belongs to the view before
        app = control.set_value(option).run()
        assert not app.exception
        yield app


def written(app: AppTest) -> Iterator[str]:
    """All words of a page and of its pictures, except formulas and code."""
    yield from (
        text for text in texts(app) if not text.startswith("$$") and "import torch" not in text
    )
    for picture in app.get("plotly_chart"):
        yield from strings(json.loads(picture.proto.spec))


def clipped(app: AppTest) -> Iterator[str]:
    """Pictures that leave out values, by their colours or the end of an axis, and do not say so."""
    for picture in app.get("plotly_chart"):
        spec = json.loads(picture.proto.spec)
        layout, said = spec["layout"], " ".join(strings(spec["layout"]))
        for trace in spec["data"]:
            ends = [("z", [trace.get("zmin"), trace.get("zmax")])]
            from_nought = trace["type"] == "bar" and "base" not in trace
            if from_nought or "markers" in trace.get("mode", ""):
                for axis in ("x", "y"):
                    drawn = layout.get(
                        trace.get(f"{axis}axis", axis).replace(axis, f"{axis}axis"), {}
                    )
                    ends.append(
                        (axis, drawn.get("range", []) if drawn.get("type") != "log" else [])
                    )
            for name, limits in ends:
                if name in trace and len(limits) == 2 and None not in limits:
                    values = numbers(trace[name])
                    low, high = sorted(limits)
                    room = 1e-6 * (high - low)
                    beyond = (values < low - room) | (values > high + room)
                    if beyond.any() and not re.search("beyond|outside", said):
                        yield f"{name} of {trace.get('name')}: {values[beyond]} beyond {limits}"


def in_words(text: str) -> Iterator[tuple[str, str, bool]]:
    """Equations in a text: the line, the sign, and whether what is printed is equal to the last digit."""
    plain = re.sub(r"\s+", " ", _DRESS.sub("", text)).replace("−", "-")
    for left, sign, right in _EQUATION.findall(plain):
        sides = [left, right]
        if any(re.search(r"\d\s*[·×÷/+-]", side) for side in sides):
            literals = [side for side in sides if re.fullmatch(_NUMBER, side)]
            decimals = max(len(one.partition(".")[2]) for one in literals or ["0"])
            apart = abs(value(left) - value(right))
            yield f"{left} {sign} {right}", sign, apart < 0.5 * 10**-decimals


def value(side: str) -> float:
    python = re.sub(r"√([\d.]+)", r"sqrt(\1)", side.replace(",", ""))
    python = python.translate(str.maketrans("·×÷", "**/"))
    return float(eval(python, {"__builtins__": {}, "sqrt": math.sqrt}))


def lines(latex: str) -> list[str]:
    """The equations of aligned rows, each in one line, and without what only dresses it."""
    plain = re.sub(r"\\(?:begin|end)\{aligned\}|\\text\{then\}|\\;|\\mathbf(?=\{)", "", latex)
    plain = re.sub(r"\\\\\s*&(?==|\\approx)", "", plain)
    rows = (re.sub(r"[&$]|\\!", "", row).strip() for row in plain.split(r"\\"))
    return [re.sub(r"\{(-?[\d.]+)\}$", r"\1", row) for row in rows]


def in_formulas(app: AppTest) -> Iterator[tuple[str, str, bool]]:
    """The same of the formulas of a page."""
    for line in (line for formula in app.latex for line in lines(formula.value)):
        for left, sign, right in equations(line):
            if re.search(r"\d", right) and (worked := value_of(left, {})) is not None:
                fits = holds(worked, right)
                if fits is not None:
                    yield line, sign, fits


@pytest.mark.parametrize("text", SENTENCES, ids=("sentence", "one-token"))
@pytest.mark.parametrize("page", READING)
def test_what_a_page_prints_is_true_as_printed(page: str, text: str) -> None:
    worked, wrong = 0, list[str]()
    for app in views(page, text):
        formulas, said = list(in_formulas(app)), list(written(app))
        sums = [found for one in said for found in in_words(one)]
        wrong += [line for line, sign, fits in formulas if (sign == "=") != fits]
        wrong += [line for line, sign, fits in sums if sign == "=" and not fits]
        wrong += [one for one in said if HYPHEN.search(one) or NEGATIVE_ZERO.search(one)]
        wrong += clipped(app)
        wrong += [one for one in said if text == "a" and COMPARED.search(one)]
        worked += len(formulas) + len(sums)
    assert wrong == []
    assert worked >= (page in WORKED)


def test_the_reader_sees_a_false_equation_and_a_true_one() -> None:
    said = (
        "score 42.5195 × 0.1768 = 7.5165 · listed 0.5 + other 0.5 = 1. "
        "9.40 ≈ +0.66 (all heads) +8.75 (rest)"
    )
    assert [(sign, fits) for _, sign, fits in in_words(said)] == [
        ("=", False),
        ("=", True),
        ("≈", False),
    ]
