"""The layer norm page: every view on every model, its numbers, and texts that could break it."""

import re

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model import Trace
from model.loading.registry import models
from tests.model.tiny import sentence
from tests.pages.kinds import name_of
from tests.pages.reading import choose, control, drawn, own, said, tables, visit

TEXT = "the cat saw the cat"


def opened(view: str = "This norm", **parameters: str) -> AppTest:
    return visit("layer_norm", **{"model": "stories", "text": TEXT, "show": view} | parameters)


def traced(name: str) -> Trace:
    """A pass over a sentence in the model's own vocabulary; `.text` is that sentence."""
    return own(name).trace(sentence(own(name)), record="full")


def test_each_stage_draws_the_recorded_values(subtests: pytest.Subtests) -> None:
    for model in sorted(models):
        with subtests.test(model=model):
            trace = traced(model)
            app, norm = opened(model=model, text=trace.text), trace.norms[1]
            assert len(set(control(app, "Norm").options)) == len(trace.norms)
            choose(app, "Norm", norm.name)
            for stage in ("input", "normalized", "output"):
                choose(app, "Stage", stage.capitalize())
                np.testing.assert_allclose(drawn(app), getattr(norm, stage), rtol=1e-6)
            choose(app, "Stage", "Per token")
            frame = tables(app)[0]
            np.testing.assert_allclose(frame["input: mean"], norm.input.mean(-1), atol=1e-5)
            np.testing.assert_allclose(frame["input: variance"], norm.variance, rtol=1e-4)
            np.testing.assert_allclose(frame["output: deviation"], norm.output.std(-1), rtol=1e-4)


def test_it_opens_on_the_spread_of_each_token_before_and_after(subtests: pytest.Subtests) -> None:
    """A bar from mean − deviation to mean + deviation; of an RMS norm, the root mean square around 0."""
    for model, kind in [("stories", "layer"), ("llama", "rms")]:
        with subtests.test(model=model):
            trace = traced(name_of(model))
            app, norm = opened(model=name_of(model), text=trace.text), trace.norms[-1]
            assert norm.kind == kind
            choose(app, "Norm", norm.name)
            for at, values in enumerate((norm.input, norm.normalized)):
                wide = values.astype(np.float64)
                squares = (wide**2).mean(-1)
                centre = wide.mean(-1) if kind == "layer" else 0 * squares
                reach = np.sqrt(squares - centre**2)
                np.testing.assert_allclose(drawn(app, "bar", "base", at), centre - reach, atol=1e-4)
                np.testing.assert_allclose(drawn(app, "bar", "x", at), 2 * reach, rtol=1e-4)


def test_the_formula_holds_the_numbers_of_the_chosen_token_and_dimension() -> None:
    trace = traced("stories")
    app, norm = opened(text=trace.text), trace.norms[0]
    choose(app, "Norm", norm.name)
    choose(app, "Token", 3)
    choose(app, "Dimension", 7)
    numbers = app.latex[1].value.replace("{,}", "")
    final = re.search(r"mathbf\{(-?[\d.]+)\}", numbers)
    assert final is not None
    assert float(final.group(1)) == pytest.approx(float(norm.output[3, 7]), abs=6e-5)
    assert rf"\mu &= {norm.mean[3]:.4f}" in numbers


def test_an_rms_norm_of_the_input_and_the_difference_are_drawn() -> None:
    trace = traced("stories")
    app, norm = opened("RMS norm beside it", text=trace.text), trace.norms[-1]
    choose(app, "Norm", norm.name)
    choose(app, "Stage", "Result of an RMS norm")
    squares = np.square(norm.input).mean(-1, keepdims=True)
    expected = norm.input / np.sqrt(squares + norm.epsilon)
    np.testing.assert_allclose(drawn(app), expected, atol=1e-4)
    choose(app, "Stage", "Difference")
    np.testing.assert_allclose(drawn(app), expected - norm.normalized, atol=1e-4)


def test_the_page_says_where_this_models_norms_stand(subtests: pytest.Subtests) -> None:
    for model, words in [("stories", "**pre-norm**"), ("minilm", "**post-norm**")]:
        with subtests.test(model=model):
            assert words in said(opened("Where it stands", model=model))


def test_a_choice_that_a_shorter_sentence_lacks_goes_back_to_the_first_token() -> None:
    app = opened()
    choose(app, "Token", 4)
    app.text_area[0].set_value("cat").run()
    assert not app.exception
    assert control(app, "Token").value == 0
