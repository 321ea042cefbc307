"""The pages Feed-forward and Stream: each view on every model, and its numbers."""

import html
import json
import re

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model.analysis.stream.feed_forward import bends, strongest
from model.analysis.stream.stream import contributions, lengths
from model.loading.registry import models
from model.trace.trace import Trace
from tests.cases import cases
from tests.model.tiny import sentence
from tests.pages.kinds import name_of
from tests.pages.reading import choose, control, drawn, numbers, own, said, shows, visit
from viz.notation.labels import token_label
from viz.notation.numbers import signed
from viz.views.feed_forward.stream import settled_at


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


@cases("model", sorted({*models} - {WITHOUT}))
def test_the_neurons_drawn_are_the_strongest_with_their_recorded_values(model) -> None:
    records, app = traced(model).feed_forward, opened(model=model)
    for record in (records[0], records[-1]):
        choose(app, "Layer", record.name)
        expected = record.hidden[:, strongest(record.hidden, 24)]
        np.testing.assert_allclose(numbers(pictures(app)[0]["z"]), expected, rtol=1e-6)


def test_the_formula_holds_the_chosen_tokens_strongest_neuron() -> None:
    app, record = opened(), traced("stories").feed_forward[0]
    choose(app, "Token", 2)
    listed = strongest(record.hidden, 24)
    column = int(np.abs(record.hidden[2, listed]).argmax())
    neuron = listed[column]
    assert f"Neuron {neuron}, largest" in said(app)
    assert f"neuron {neuron} is largest" in said(app)
    shapes = json.loads(app.get("plotly_chart")[0].proto.spec)["layout"]["shapes"]
    assert (column - 0.5, 1.5) in [(one["x0"], one["y0"]) for one in shapes]
    assert right_side(app, 0) == pytest.approx(float(record.hidden[2, neuron]), abs=6e-5)


@pytest.mark.slow
@cases("model", ["house-gpt", "stories", "minilm", "llama"])
def test_it_opens_on_a_neuron_that_the_activation_really_bends(model) -> None:
    """Of the neurons drawn, none is bent more on any token; both values stand on the curve."""
    app, record = opened(model=model), traced(model).feed_forward[0]
    listed = strongest(record.hidden, 24)
    bent = bends(own(name_of(model)).config.activation, record.before[:, listed])
    token, at = np.unravel_index(bent.argmax(), bent.shape)
    assert bent[token, at] > 0.05
    assert control(app, "Token").value == token
    assert f"Neuron {listed[at]}, bent most" in said(app)
    assert f"bends neuron {listed[at]} most" in said(app)
    assert right_side(app, 1) == pytest.approx(float(record.hidden[token, listed[at]]), abs=6e-5)
    marked = pictures(app)[-1]
    assert marked["text"][-1] == f"neuron {listed[at]}"
    assert numbers(marked["x"])[-1] == pytest.approx(float(record.before[token, listed[at]]))


def test_nothing_is_said_of_a_bend_where_relu_cuts_off_or_lets_through() -> None:
    app = opened(model="translate-en-fr")
    assert own("translate-en-fr").config.activation == "relu"
    assert "bent most" not in said(app)


def right_side(app: AppTest, number: int) -> float:
    """What the numbers of a neuron come to."""
    return float(re.split(r"= |\\approx ", app.latex[1 + number].value)[-1].strip("$\n"))


def pictures(app: AppTest) -> list[dict]:
    """The last trace of each picture: the heatmap of the neurons, and the points on the curve."""
    specs = (json.loads(picture.proto.spec)["data"] for picture in app.get("plotly_chart"))
    return [next((one for one in spec if one["type"] == "heatmap"), spec[-1]) for spec in specs]


@cases("model", ["house-gpt", "llama"])
def test_the_values_behind_the_curve_are_told(model) -> None:
    record, app = traced(model).feed_forward[0], opened("On the curve", model=model)
    mean, below = record.before.mean(dtype=np.float64), (record.before < 0).mean()
    assert f"is {signed(f'{mean:.3f}')}." in said(app)
    assert f"**{below:.1%}** of" in said(app)


def stream(view: str, model: str = "stories", text: str | None = None) -> AppTest:
    text = sentence(own(name_of(model))) if text is None else text
    return visit("stream", model=name_of(model), text=text, show=view)


@cases("model", sorted(models))
def test_the_bars_are_the_lengths_of_the_contributions(model) -> None:
    trace, config = traced(model), own(model).config
    app = stream("Contributions", model)
    for stack in trace.residual:
        if len(trace.residual) > 1:
            choose(app, "Stream", stack)
        added = np.stack([lengths(part.added) for part in contributions(own(model), trace, stack)])
        choose(app, "Lengths for", 0)
        np.testing.assert_allclose(drawn(app, "bar", "y"), added.mean(1), rtol=1e-5)
        choose(app, "Lengths for", 1)
        np.testing.assert_allclose(drawn(app), added.T, rtol=1e-5)
        choose(app, "Lengths for", 2)
        np.testing.assert_allclose(drawn(app, "bar", "y"), added[:, 0], rtol=1e-5)
    assert ("all contributions differ" in said(app)) is config.norms_input


@cases("model", ["stories", "house-gpt"])
def test_each_cell_holds_what_its_state_would_predict(model) -> None:
    """Compared with the model's own last step on each recorded state."""
    text = "Anna gave the ball to Tom"
    live, app = own(model), stream("Layer by layer", model, text)
    trace = live.trace(text)
    (table,) = [one.proto.body for one in app.get("html") if 'class="lens"' in one.proto.body]
    rows = re.findall(r"<tr>(.*?)</tr>", table)[1:]
    assert len(rows) == len(trace.residual["decoder"])
    for state, row in zip(trace.residual["decoder"], rows, strict=True):
        shares = softmax(live.unembed(state).astype(np.float64))
        cells = re.findall(r"--share:([\d.]+)[^>]*>(?:<b>)?([^<]*)", row)
        best = [token.text for token in live.tokenizer.named(shares.argmax(-1).tolist())]
        assert [label for _, label in cells] == [html.escape(token_label(one)) for one in best]
        np.testing.assert_allclose([float(one) for one, _ in cells], shares.max(-1), atol=1e-3)
    final = shares[-1].argmax()
    choose(app, "Probability of", 1)
    (table,) = [one.proto.body for one in app.get("html") if 'class="lens"' in one.proto.body]
    *_, last = re.findall(r"<tr>(.*?)</tr>", table)[1].split("<td")
    first = softmax(live.unembed(trace.residual["decoder"][0]).astype(np.float64))
    assert float(re.findall(r"--share:([\d.]+)", last)[0]) == pytest.approx(
        first[-1, final], abs=1e-3
    )
    assert re.search(r"own output .* (0|\de−\d), over ", said(app))


def softmax(logits: np.ndarray) -> np.ndarray:
    shares = np.exp(logits - logits.max(-1, keepdims=True))
    return np.asarray(shares / shares.sum(-1, keepdims=True))


def test_the_framed_cell_is_where_the_final_token_stays() -> None:
    assert settled_at([3]) == 0
    assert settled_at([1, 2, 3]) == 2
    assert settled_at([3, 2, 3, 3]) == 2
    app = stream(
        "Layer by layer", "house-gpt", "Tom Hill saw a red ball. Anna gave the ball to Tom"
    )
    (table,) = [one.proto.body for one in app.get("html") if 'class="lens"' in one.proto.body]
    columns = [
        re.findall(r"<td.*?</td>", row)[-1] for row in re.findall(r"<tr>(.*?)</tr>", table)[1:]
    ]
    at = next(place for place, cell in enumerate(columns) if 'first"' in cell)
    assert all("<b>" in cell for cell in columns[at:])
    assert "<b>" not in columns[at - 1]


def test_an_encoder_has_no_prediction_and_is_not_asked_for_one() -> None:
    assert not shows(stream("Layer by layer", "minilm"))
    assert drawn(stream("Layer by layer", "minilm"), "bar", "y").size
