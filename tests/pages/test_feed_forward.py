"""The feed-forward page: every view on every model, its numbers, and texts that could break it."""

import json
import re

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model.analysis.stream.feed_forward import bends, strongest
from model.analysis.stream.stream import contributions, lengths
from model.loading.registry import models
from model.trace.trace import Trace
from tests.model.tiny import sentence
from tests.pages.kinds import name_of
from tests.pages.reading import choose, control, drawn, numbers, own, said, visit
from viz.notation.numbers import signed


def opened(view: str = "Neurons", model: str = "stories", text: str | None = None) -> AppTest:
    text = sentence(own(name_of(model))) if text is None else text
    return visit("feed_forward", model=name_of(model), text=text, show=view)


WITHOUT = "induction"  # attention only


def traced(name: str) -> Trace:
    return own(name_of(name)).trace(sentence(own(name_of(name))), record="full")


def test_a_model_without_feed_forward_layers_says_so() -> None:
    app = opened(model=WITHOUT)
    assert traced(WITHOUT).feed_forward == ()
    assert "attention only" in app.info[0].value
    assert not app.get("plotly_chart")


def test_the_neurons_drawn_are_the_strongest_with_their_recorded_values(
    subtests: pytest.Subtests,
) -> None:
    for model in sorted({*models} - {WITHOUT}):
        with subtests.test(model=model):
            records, app = traced(model).feed_forward, opened(model=model)
            for record in (records[0], records[-1]):
                choose(app, "Layer", record.name)
                expected = record.hidden[:, strongest(record.hidden, 24)]
                np.testing.assert_allclose(numbers(pictures(app)[0]["z"]), expected, rtol=1e-6)
                mean, below = record.before.mean(dtype=np.float64), (record.before < 0).mean()
                assert f"is {signed(f'{mean:.3f}')}, and **{below:.1%}** of" in said(app)


def test_the_formula_holds_the_chosen_tokens_strongest_neuron() -> None:
    app, record = opened(), traced("stories").feed_forward[0]
    choose(app, "Token", 2)
    neuron = int(np.abs(record.hidden[2]).argmax())
    assert f"largest activation, {neuron}:" in said(app)
    assert right_side(app, 0) == pytest.approx(float(record.hidden[2, neuron]), abs=6e-5)


@pytest.mark.slow
def test_it_opens_on_a_neuron_that_the_activation_really_bends(subtests: pytest.Subtests) -> None:
    """Of the neurons drawn, none is bent more on any token; both values stand on the curve."""
    for model in ["house-gpt", "stories", "minilm", "llama"]:
        with subtests.test(model=model):
            app, record = opened(model=model), traced(model).feed_forward[0]
            listed = strongest(record.hidden, 24)
            bent = bends(own(name_of(model)).config.activation, record.before[:, listed])
            token, at = np.unravel_index(bent.argmax(), bent.shape)
            assert bent[token, at] > 0.05
            assert control(app, "Token").value == token
            assert f"changes most here, {listed[at]}:" in said(app)
            assert right_side(app, 1) == pytest.approx(
                float(record.hidden[token, listed[at]]), abs=6e-5
            )
            marked = pictures(app)[-1]
            assert marked["text"][-1] == f"neuron {listed[at]}"
            assert numbers(marked["x"])[-1] == pytest.approx(
                float(record.before[token, listed[at]])
            )


def test_nothing_is_said_of_a_bend_where_relu_cuts_off_or_lets_through() -> None:
    app = opened(model="translate-en-fr")
    assert own("translate-en-fr").config.activation == "relu"
    assert "changes most" not in said(app)


def right_side(app: AppTest, number: int) -> float:
    """What a formula in numbers comes to."""
    return float(re.split(r"= |\\approx ", app.latex[number].value)[-1].strip("$\n"))


def pictures(app: AppTest) -> list[dict]:
    """The last trace of each picture: the heatmap of the neurons, and the points on the curve."""
    specs = (json.loads(picture.proto.spec)["data"] for picture in app.get("plotly_chart"))
    return [next((one for one in spec if one["type"] == "heatmap"), spec[-1]) for spec in specs]


def test_the_bars_are_the_lengths_of_the_contributions(subtests: pytest.Subtests) -> None:
    for model in sorted(models):
        with subtests.test(model=model):
            trace, config = traced(model), own(model).config
            app = opened("Contributions", model)
            for stack in trace.residual:
                if len(trace.residual) > 1:
                    choose(app, "Stream", stack)
                added = np.stack(
                    [lengths(part.added) for part in contributions(own(model), trace, stack)]
                )
                choose(app, "Lengths for", 0)
                np.testing.assert_allclose(drawn(app, "bar", "y"), added.mean(1), rtol=1e-5)
                choose(app, "Lengths for", 1)
                np.testing.assert_allclose(drawn(app, "bar", "y"), added[:, 0], rtol=1e-5)
            assert ("all contributions differ" in said(app)) is config.norms_input
