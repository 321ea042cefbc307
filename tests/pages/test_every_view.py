"""One walk through every view of every page: House GPT reads a sentence and a single token, then a model of
each other kind reads. What is held of all views is held here: each draws something, breaks nothing and prints
no NaN; equations, numbers and superlatives are true as printed; no view says what the modules contradict."""

import json
import math
import re
from collections.abc import Iterator
from pathlib import PurePath

import pytest
from streamlit.testing.v1 import AppTest

from tests.hostile.laws import strings
from tests.model.worked.test_latex import equations, holds, value_of
from tests.pages.kinds import KINDS, name_of
from tests.pages.module_facts import contradictions, facts
from tests.pages.reading import cards, drawers, numbers, said, visit
from tools.words import shows, texts
from viz.state.navigation import PAGES
from viz.views.experiments.asking import ALL
from viz.views.experiments.experiments import experiments

LENT = "translate-en-fr"  # the model of a page that lends its sentence
WALKS = [
    (PurePath(page.file).stem, model, text)
    for page in PAGES
    for model, text in [("house-gpt", "a"), *KINDS.items()]
    if (page.reads and not page.lends) or model == LENT
]
CHANGED = {"home": {"scale": "1.0"}}  # without a change there is little to see
# Choices between few within a view: each is made once.
INNER = ("Picture", "Show as", "Stream", "Values", "Stage")
LAST = (
    "Norm",
    "Layer",
    "Part of the model",
    "Measure",
    "Number",
    "Score",
    "Matrix",
    "W_O",
    "On the right",
)  # choices in a list: the last one is made
SAYS_WHERE_TO_LOOK = (
    "tokens", "vectors", "layer_norm", "stream", "positions", "feed_forward", "prediction",
    "writing", "shapes_and_cost",
)  # fmt: skip
CHECKED = {  # views that hold their numbers against the model's own
    "home": ("Why?", "Carries"),
    "all_heads": ("Maps", "What it writes"),
    "head": ("Matrices", "Joined"),
    "compare": ("Averages",),
    "layer_norm": ("",),
    "stream": ("Layer by layer", "Contributions"),
    "prediction": ("Which tokens made it?",),
    "writing": ("Token by token", "KV cache"),
    "tokens": ("Tokens",),
    "vectors": ("Look-up",),
    "shapes_and_cost": ("",),
    "model_as_code": ("",),
}  # fmt: skip
OF_SOME = {
    "Experts",
    "Added to the scores",
    "As a chat",
}  # views of models that have what they show
DRAWN = ("plotly_chart", "arrow_data_frame", "html", "bidi_component", "info", "latex", "code")
WORKED = ("layer_norm", "feed_forward", "prediction", "all_heads")
HYPHEN = re.compile(r"(?:^|[\s(*|=×·+])-\d")
NEGATIVE_ZERO = re.compile(r"(?<!\w)[-−]0(?:\.0+)?(?![\d.,])")
CODE = re.compile(r"`[^`]*`|\w+\.\w+\([^)]*\)")  # a minus or an inf in it is meant
MISSING = re.compile(r"\b(?:nan|inf|None)\b")
COMPARED = re.compile(
    r"(?:any other|at another|an earlier) token|(?:differ most on|(?:attends|falls|counts) most)|, most at"
)
_DRESS = re.compile(r"\*\*|\\(?=[^a-z])|\([a-z ]+\)|\b(?:Listed|other)\b")
_NUMBER = r"[-+]?√?\d[\d,]*(?:\.\d+)?"
_SIDE = rf"{_NUMBER}(?:\s*[·×÷/+-]\s*{_NUMBER})*"
_EQUATION = re.compile(rf"({_SIDE})\s*([=≈])\s*({_SIDE})")


def views(page: str, **given: str) -> Iterator[tuple[str, AppTest]]:
    """The page as it opens, then each of its views, and each choice that stands in a view."""
    app = visit(page, **given)
    yield "", app
    for option in [option for control in shows(app) for option in control.options]:
        (control,) = shows(app)  # as drawn now: an older one belongs to the view before
        app = control.set_value(option).run()
        yield option, app
        few = [(one.key, one.options[1:]) for one in app.segmented_control if one.label in INNER]
        for key, others in few:
            for other in others:
                app = app.segmented_control(key=key).set_value(other).run()
                yield f"{option}, {other}", app
        for key in [one.key for one in app.selectbox if one.label in LAST]:
            if key not in [one.key for one in app.selectbox]:
                continue  # the box before it has taken it away
            app.selectbox(key=key).select_index(len(app.selectbox(key=key).options) - 1)
            app = app.run()
            yield f"{option}, the last one", app
    yield from cards(app)
    yield from drawers(app)


def offers(page: str, app: AppTest) -> set[str]:
    """The views that a page leads to, by the names that links give them."""
    if page == "experiments":  # its cards are links
        return {ALL, *(one.show for one in experiments())}
    return {option for control in shows(app) for option in control.options}


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


def troubles(app: AppTest, *, alone: bool) -> tuple[list[str], int]:
    """What breaks a law of all views, and how many equations were read. alone: the text is one token."""
    wrong = [f"breaks: {one.value}" for one in app.exception]
    wrong += [error.value for error in app.error]
    if not any(app.get(kind) for kind in DRAWN):
        wrong.append("draws nothing")
    read = dict.fromkeys(written(app))
    equations = [*in_formulas(app)]
    wrong += [line for line, sign, fits in equations if (sign == "=") != fits]
    for text in read:
        told = [*in_words(text)]
        equations += told
        wrong += [line for line, sign, fits in told if sign == "=" and not fits]
        plainly = text.replace("\\", "")  # as the browser shows it
        prose = CODE.sub("", text)
        if MISSING.search(prose) or HYPHEN.search(prose) or NEGATIVE_ZERO.search(plainly):
            wrong.append(text)
        if alone and COMPARED.search(text):
            wrong.append(text)
    return [*wrong, *clipped(app)], len(equations)


@pytest.mark.parametrize(("page", "model", "text"), WALKS)
def test_every_view_is_drawn_and_what_it_prints_is_true(page: str, model: str, text: str) -> None:
    given = {"model": name_of(model), "text": text} | CHANGED.get(page, {})
    wrong, worked = dict[str, list[str]](), 0
    listed = next(entry for entry in PAGES if PurePath(entry.file).stem == page)
    for view, app in views(page, **given):
        offered = offers(page, app)
        if not offered <= set(listed.variants):  # the search lists them
            wrong["listed"] = sorted(offered - set(listed.variants))
        if (
            model == "house-gpt"
            and page not in ("encoder_decoder", "home")  # whose views are drawers
            and set(listed.variants) - offered - OF_SOME
        ):
            wrong["not offered"] = sorted(set(listed.variants) - offered - OF_SOME)
        words = said(app)
        found, count = troubles(app, alone=text == "a")
        worked += count
        if page in SAYS_WHERE_TO_LOOK and not app.info and "What to look for" not in words:
            found.append("does not say what to look for")
        if (
            view in CHECKED.get(page, ())
            and model in ("house-gpt", "llama")
            and (page != "tokens" or "is cut." in words)  # other words have no steps to check
            and "Check" not in words
        ):
            found.append("has no check")
        if page != "encoder_decoder" or model == LENT:
            found += [word for word in contradictions(facts(name_of(model))) if word in words]
        if found:
            wrong[view] = found
    assert app.title[0].value == (listed.heading or listed.title)
    assert wrong == {}
    assert worked or page not in WORKED or model != "house-gpt"


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
