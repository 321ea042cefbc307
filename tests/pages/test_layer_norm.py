"""The layer norm page: every view on every model, its numbers, and texts that could break it."""

import re
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model import Trace
from model.loading.registry import models
from model.run.tokenizers import Words
from tests.model.tiny import sentence
from tests.pages.reading import drawn, tables
from viz.state.engine import engine
from viz.views.norms.views import STAGES, VIEWS

PAGE = Path(__file__).resolve().parents[2] / "pages" / "layer_norm.py"
TEXT = "the cat saw the cat"
HOSTILE = ("a", "<b>x</b> &lt;", "*a* $x^2$ :red[r] `c` #000001", "🦊 \u202e abc", "word " * 600)


def opened(view: str = "This norm", **parameters: str) -> AppTest:
    app = AppTest.from_file(str(PAGE), default_timeout=60)
    for name, value in ({"model": "stories", "text": TEXT} | parameters).items():
        app.query_params[name] = value
    app.run()
    if view != "This norm":
        control(app, "Show").set_value(view).run()
    assert not app.exception
    return app


def control(app: AppTest, label: str):
    kinds = (app.segmented_control, app.selectbox, app.number_input)
    (found,) = [widget for kind in kinds for widget in kind if widget.label == label]
    return found


def traced(name: str) -> Trace:
    """A pass over a sentence in the model's own vocabulary; `.text` is that sentence."""
    model = engine().model(name, lambda *news: None)
    return model.trace(sentence(model), record="full")


def said(app: AppTest) -> str:
    return " ".join(part.value for kind in (app.markdown, app.caption) for part in kind)


@pytest.mark.parametrize("model", sorted(models))
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_of_every_norm_is_drawn(view: str, model: str) -> None:
    trace = traced(model)
    app = opened(view, model=model, text=trace.text)
    names = [norm.name for norm in trace.norms]
    assert len(control(app, "Norm").options) == len(set(control(app, "Norm").options))
    assert len(control(app, "Norm").options) == len(names)
    for name in (names[0], names[-1]):
        control(app, "Norm").set_value(name).run()
        assert not app.exception
        assert "Check:" in said(app)
        assert "nan" not in said(app)


@pytest.mark.parametrize("model", sorted(models))
def test_each_stage_draws_the_recorded_values(model: str) -> None:
    trace = traced(model)
    app, norm = opened(model=model, text=trace.text), trace.norms[1]
    control(app, "Norm").set_value(norm.name).run()
    for stage, values in zip(STAGES, (norm.input, norm.normalized, norm.output), strict=False):
        control(app, "Stage").set_value(stage).run()
        np.testing.assert_allclose(drawn(app), values, rtol=1e-6)
    control(app, "Stage").set_value("Per token").run()
    frame = tables(app)[0]
    np.testing.assert_allclose(frame["input: mean"], norm.input.mean(-1), atol=1e-5)
    np.testing.assert_allclose(frame["input: variance"], norm.variance, rtol=1e-4)
    np.testing.assert_allclose(frame["output: deviation"], norm.output.std(-1), rtol=1e-4)


def test_the_formula_holds_the_numbers_of_the_chosen_token_and_dimension() -> None:
    trace = traced("stories")
    app, norm = opened(text=trace.text), trace.norms[0]
    control(app, "Norm").set_value(norm.name).run()
    control(app, "Token").set_value(3).run()
    control(app, "Dimension").set_value(7).run()
    numbers = app.latex[1].value.replace("{,}", "")
    final = re.search(r"mathbf\{(-?[\d.]+)\}", numbers)
    assert final is not None
    assert float(final.group(1)) == pytest.approx(float(norm.output[3, 7]), abs=6e-5)
    assert rf"\mu &= {norm.mean[3]:.4f}" in numbers


def test_an_rms_norm_of_the_input_and_the_difference_are_drawn() -> None:
    trace = traced("stories")
    app, norm = opened("RMS norm beside it", text=trace.text), trace.norms[-1]
    control(app, "Norm").set_value(norm.name).run()
    control(app, "Stage").set_value("What an RMS norm would make of it").run()
    squares = np.square(norm.input).mean(-1, keepdims=True)
    expected = norm.input / np.sqrt(squares + norm.epsilon)
    np.testing.assert_allclose(drawn(app), expected, atol=1e-4)
    control(app, "Stage").set_value("Difference").run()
    np.testing.assert_allclose(drawn(app), expected - norm.normalized, atol=1e-4)


@pytest.mark.parametrize(
    ("model", "words"), [("stories", "**pre-norm**"), ("minilm", "**post-norm**")]
)
def test_the_page_says_where_this_models_norms_stand(model: str, words: str) -> None:
    assert words in said(opened("Where it stands", model=model))


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("model", sorted(models))
def test_no_text_breaks_a_view(model: str, text: str) -> None:
    app = opened(model=model, text=text)
    own = engine().model(model, lambda *news: None)
    refused = isinstance(own.tokenizer, Words) and bool(own.new_words(text))
    assert bool(app.error) is refused  # a closed vocabulary refuses other words in a sentence
    if refused:
        assert "does not know" in app.error[0].value
        return
    for view in VIEWS:
        control(app, "Show").set_value(view).run()
        assert not app.exception
        assert "nan" not in said(app)


def test_a_choice_that_a_shorter_sentence_lacks_goes_back_to_the_first_token() -> None:
    app = opened()
    control(app, "Token").set_value(4).run()
    app.text_input[0].set_value("cat").run()
    assert not app.exception
    assert control(app, "Token").value == 0
