"""The page of norms: its picture on every model, and its numbers."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model import Trace
from model.loading.registry import models
from tests.cases import cases
from tests.model.tiny import sentence
from tests.pages.kinds import name_of
from tests.pages.reading import choose, control, drawn, own, said, tables, visit
from viz.views.norms.views import norm_check

TEXT = "the cat saw the cat"


def opened(**parameters: str) -> AppTest:
    return visit("layer_norm", **{"model": "stories", "text": TEXT} | parameters)


def traced(name: str) -> Trace:
    """A pass over a sentence in the model's own vocabulary; `.text` is that sentence."""
    return own(name).trace(sentence(own(name)), record="full")


@cases("model", [*sorted(models), "llama"])
def test_the_spread_of_each_token_is_drawn_at_each_stage(model) -> None:
    """A bar from mean − deviation to mean + deviation; of an RMS norm, the root mean square around 0."""
    trace = traced(name_of(model))
    app, norm = opened(model=name_of(model), text=trace.text), trace.norms[1]
    assert len(set(control(app, "Norm").options)) == len(trace.norms)
    choose(app, "Norm", norm.name)
    for at, values in enumerate((norm.input, norm.normalized, norm.output)):
        wide = values.astype(np.float64)
        squares = (wide**2).mean(-1)
        centre = wide.mean(-1) if norm.kind == "layer" else 0 * squares
        reach = np.sqrt(squares - centre**2)
        np.testing.assert_allclose(drawn(app, "bar", "base", at), centre - reach, atol=1e-4)
        np.testing.assert_allclose(drawn(app, "bar", "x", at), 2 * reach, rtol=1e-4)
    frame, token = tables(app)[0], control(app, "Token").value
    np.testing.assert_allclose(frame["input"], norm.input[token], rtol=1e-6)
    np.testing.assert_allclose(frame["output"], norm.output[token], rtol=1e-6)


def test_the_formula_holds_the_numbers_of_the_chosen_token_and_dimension() -> None:
    trace = traced("stories")
    app, norm = opened(text=trace.text), trace.norms[0]
    choose(app, "Norm", norm.name)
    choose(app, "Token", 3)
    choose(app, "Dimension", 7)
    numbers = app.latex[1].value.replace("{,}", "")
    final = re.search(r"mathbf\{(-?[\d.]+)\}", numbers)
    assert float(final.group(1)) == pytest.approx(float(norm.output[3, 7]), abs=6e-5)
    assert rf"\mu &= {norm.mean[3]:.4f}" in numbers


@cases("model, words", [("stories", "**pre-norm**"), ("minilm", "**post-norm**")])
def test_the_page_says_where_this_models_norms_stand(model, words) -> None:
    assert words in said(opened(model=model))


def test_the_check_sees_an_input_that_is_not_what_the_norm_should_read() -> None:
    model = own("stories")
    trace = model.trace(TEXT, record="full")
    norm = trace.norms[1]
    look = SimpleNamespace(model=model, trace=trace)
    assert float(norm_check(look, norm).result) < 1e-4  # type: ignore[arg-type]
    moved = replace(norm, input=norm.input + 0.1)
    assert float(norm_check(look, moved).result) > 0.09  # type: ignore[arg-type]


def test_a_choice_that_a_shorter_sentence_lacks_goes_back_to_the_first_token() -> None:
    app = opened()
    choose(app, "Token", 4)
    app.text_area[0].set_value("cat").run()
    assert not app.exception
    assert control(app, "Token").value == 0
