"""Next token and Writing: what their controls change, and what they say where nothing is predicted."""

import json
import re
import threading
from collections.abc import Iterator
from itertools import islice
from urllib.parse import parse_qsl

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import viz.shell.background as background
import viz.views.prediction.relevance as relevance_view
from model import load_model
from model.analysis import run_comparison
from model.analysis.attribution.relevance import rank_correlation, relevances
from model.analysis.run_comparison import rounding
from model.analysis.tokens.live_writing import Choice, Writing, live_writing
from model.analysis.tokens.prediction import Sampling, probabilities
from model.serving.engine import Request
from tests.cases import cases
from tests.pages.reading import PAGES, choose, control, numbers, press, said, visit
from viz.state.engine import engine
from viz.views.prediction.writing import key_of

TEXT = "Tom Hill saw a red ball. Anna gave the ball to Tom"
VIEWS = ("The next token", "Which tokens made it?")
DRAWN = "one drawn at random"


def opened(view: str = "The next token", **parameters: str) -> AppTest:
    return visit("prediction", **{"model": "stories", "text": TEXT, "show": view} | parameters)


def writes(**parameters: str) -> AppTest:
    return visit("writing", **{"model": "stories", "text": TEXT} | parameters)


def bars(app: AppTest) -> dict[str, np.ndarray]:
    """The probabilities that are drawn, by the name of their series."""
    (chart,) = [e for e in app.get("plotly_chart") if "probability" in e.proto.spec]
    return {
        trace.get("name"): numbers(trace["x"])
        for trace in json.loads(chart.proto.spec)["data"]
        if trace.get("name")
    }


def own_logits() -> np.ndarray:
    logits = engine().model("stories", lambda *news: None).trace(TEXT).logits
    return logits[-1]


def test_the_bars_are_the_models_own_probabilities_and_sum_to_one() -> None:
    (shares,) = bars(opened()).values()
    best = np.sort(probabilities(own_logits()))[::-1][:10]
    np.testing.assert_allclose(shares[:-1], best, rtol=1e-9)
    assert shares.sum() == pytest.approx(1)


@cases("label, value, sampling", [
    ("Temperature", 2.0, Sampling(2.0)),
    ("Top-k", 3, Sampling(1.0, 3)),
    ("Top-p", 0.3, Sampling(1.0, None, 0.3)),
])  # fmt: skip
def test_each_control_changes_the_bars_to_what_is_then_drawn_from(label, value, sampling) -> None:
    app = opened()
    control(app, label).set_value(value).run()
    drawn, own = bars(app).values()
    assert not app.exception
    np.testing.assert_allclose(own[0], probabilities(own_logits()).max())
    np.testing.assert_allclose(drawn[0], sampling.of(own_logits()).max())
    assert drawn.sum() == pytest.approx(1)
    press(app, "Reset")
    assert len(bars(app)) == 1


def test_the_controls_stay_as_they_are_from_view_to_view() -> None:
    app = opened()
    control(app, "Temperature").set_value(2.0).run()
    for view in (*VIEWS[1:], *VIEWS[:1]):
        control(app, "Show").set_value(view).run()
    assert control(app, "Temperature").value == 2.0


@cases("written", ["abc", "-1", "99", "nan", "", "inf", "-inf", "1e999"])
def test_a_choice_of_a_link_that_cannot_be_is_left_out(written) -> None:
    names = ("temperature", "top-k", "top-p", "seed", "view", "how")
    app = opened(**{f"prediction-{name}": written for name in names})
    assert len(bars(app)) == 1
    writes(**{"prediction-how": DRAWN, "prediction-seed": written})


def test_an_earlier_position_says_what_follows_it_in_the_text() -> None:
    app = opened()
    assert "comes next" not in said(app)
    control(app, "After").set_value(0).run()
    assert "·Hill** comes next" in said(app)
    app.text_area[0].set_value("Anna").run()
    assert control(app, "After").value == 0
    assert not app.exception


def columns(app: AppTest) -> list[np.ndarray]:
    """The parts of the columns of the text, (step,) each: the written tokens, their rivals, all others."""
    (chart,) = [e for e in app.get("plotly_chart") if "all others" in e.proto.spec]
    return [numbers(part["y"]) for part in json.loads(chart.proto.spec)["data"]]


def marked(app: AppTest) -> str:
    (html,) = [e.proto.body for e in app.get("html") if "<mark" in e.proto.body]
    return html


def test_each_column_is_a_step_and_its_foot_the_probability_of_what_was_written() -> None:
    app = writes()
    model = engine().model("stories", lambda *news: None)
    ids = tuple(token.id for token in model.generate(TEXT, limit=16))
    rows = model.trace(TEXT, continued=ids[:-1]).require_prediction().all[-16:]
    foot, *rivals, others = columns(app)
    shares = probabilities(rows)
    np.testing.assert_allclose(foot, shares.max(-1), rtol=1e-5)
    np.testing.assert_allclose(
        [*zip(*rivals, strict=True)], np.sort(shares)[:, -2:-5:-1], rtol=1e-5
    )
    np.testing.assert_allclose(foot + sum(rivals) + others, 1)
    step = control(app, "Step").value
    assert foot[step - 1] == foot.min()  # it opens where the model was least sure


def test_steps_go_forward_and_back_and_mark_what_the_model_wrote() -> None:
    app = writes()
    written = engine().model("stories", lambda *news: None).generate(TEXT, limit=16)
    for step in (1, 2, 3, 2, 16):
        choose(app, "Step", step)
        assert f"<b><u>{written[step - 1].text}</u></b>" in marked(app)
        assert control(app, "Step").value == step


def test_another_seed_writes_another_text_of_which_each_token_was_drawn() -> None:
    app = writes()
    control(app, "Take").set_value(DRAWN).run()
    control(app, "Temperature").set_value(2.5).run()
    texts = set()
    for seed in (0, 1, 2):
        choose(app, "Seed", seed)
        texts.add(re.sub("</?[bu]>", "", marked(app)))
    assert len(texts) == 3
    control(app, "Top-k").set_value(2).run()
    foot, *rivals, others = columns(app)
    assert (foot > 0).all()
    np.testing.assert_allclose(foot + rivals[0], 1)
    assert not others.any()


def test_a_full_context_leaves_one_step() -> None:
    app = writes(text="cat " * 127 + "cat")
    assert "context of 128 " in said(app)
    assert not [slider for slider in app.slider if slider.label == "Step"]
    assert not app.exception


def test_in_the_place_of_an_encoder_a_model_that_predicts_reads_its_text() -> None:
    app = opened(model="minilm")
    (shares,) = bars(app).values()
    trace = engine().model("house-gpt", lambda *news: None).trace(TEXT)
    own = probabilities(trace.require_prediction().after(-1))
    np.testing.assert_allclose(shares[0], own.max(), rtol=1e-6)
    assert control(app, "Model").value == "minilm"
    app.button(key="use-a-gpt").click().run()
    assert control(app, "Model").value == "house-gpt"
    assert app.text_area[0].value == TEXT
    assert "use-a-gpt" not in [button.key for button in app.button]


def test_a_text_too_long_for_it_leaves_the_way_to_it() -> None:
    app = opened(model="minilm", text="cat " * 400)
    assert app.button(key="use-a-gpt")
    assert not app.get("plotly_chart")


def test_a_clicked_bar_has_its_numbers_in_the_formula() -> None:
    app = opened()
    row = own_logits()
    second = row.argsort()[-2]
    assert f"{row.max():.4f} - {row.max():.4f}" in app.latex[1].value
    app.session_state["prediction-filled"] = int(second)
    app.run()
    assert f"{row[second]:.4f} - {row.max():.4f}" in app.latex[1].value


SOURCE = "the black cat sees the dog"


def test_an_encoder_decoder_writes_its_translation_and_stops_at_the_end() -> None:
    app = writes(model="translate-en-fr", text=SOURCE)
    model = engine().model("translate-en-fr", lambda *news: None)
    written = model.generate(SOURCE, limit=16)
    assert written[-1].id == model.tokenizer.end
    choose(app, "Step", 2)
    assert f"{written[0].text} <b><u>{written[1].text}</u></b>" in marked(app)
    assert len(columns(app)[0]) == control(app, "Step").max == len(written)
    assert f"text at step {len(written)}." in said(app)


def test_what_was_written_before_it_was_stopped_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "AT_FIRST", 0)
    text = f"{TEXT} once more"  # no other test has it written
    model, choice = load_model("house-gpt"), Choice(Sampling())
    key = key_of(Request("house-gpt", text), choice, 16)
    known, left = threading.Event(), threading.Event()

    def work(run: background.Passes[Writing]) -> Iterator[Writing]:
        yield from islice(live_writing(model, model.tokens(text), choice, steps=16), 3)
        known.set()
        left.wait(60)

    run = background.shared_passes().started(key, work)
    try:
        assert known.wait(60)
        app = writes(model="house-gpt", text=text)
        assert "Step" not in [slider.label for slider in app.slider]
        assert marked(app)  # the text so far
        app.button(key="prediction-writing-stop").click().run()
        assert "Stopped after 3 tokens." in said(app)
        assert len(columns(app)[0]) == control(app, "Step").max == 3
        assert not run.ended.is_set()
    finally:
        left.set()
        run.stopped.set()


def test_the_text_that_was_written_opens_on_explore() -> None:
    app = AppTest.from_file(str(PAGES.parent / "app.py"), default_timeout=120)
    app.query_params["model"], app.query_params["text"] = "stories", TEXT
    app.run()
    app.switch_page("pages/writing.py").run()
    (link,) = [one for one in app.get("page_link") if "Explore" in one.proto.label]
    text = dict(parse_qsl(link.proto.query_string))["text"]
    written = engine().model("stories", lambda *news: None).generate(TEXT, limit=16)
    assert text == TEXT + "".join(token.text for token in written)


DECIMAL = r"\d+\.(\d+)"


def decimals(pattern: str, text: str) -> list[int]:
    """How many decimals each number has that stands where the pattern says."""
    found = re.findall(pattern.replace("N", DECIMAL), text)
    assert found, pattern
    return [len(one) for many in found for one in ([many] if isinstance(many, str) else many)]


def test_no_digit_is_shown_that_single_precision_does_not_settle() -> None:
    trace = engine().model("house-gpt", lambda *news: None).trace("Anna gave")
    error = rounding(trace, trace.prediction.after(-1))
    assert 5e-5 < error < 1e-4  # of a logit or a loss: four decimals hold, of four nats only three
    app = opened(model="house-gpt", text="Anna gave", **{"prediction-top-k": "5"})
    words = said(app)
    assert decimals("own is N", words) == [3]
    (chart,) = [e for e in app.get("plotly_chart") if "probability" in e.proto.spec]
    _, *series = json.loads(chart.proto.spec)["data"]
    for shares in series:
        for share, text in zip(numbers(shares["x"]), shares["hovertext"], strict=True):
            (places,) = decimals("N$", text)
            assert 10.0**-places >= error * min(share, 1 - share)


def test_a_run_of_lower_precision_shows_the_digits_that_its_errors_leave(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    coarse = 40 * float(np.finfo(np.float32).eps)
    monkeypatch.setattr(run_comparison, "epsilon", lambda trace: coarse)
    uncached = run_comparison.rounding_of_weights.__wrapped__
    monkeypatch.setattr(run_comparison, "rounding_of_weights", uncached)
    assert (
        2e-3 < rounding(engine().model("house-gpt", lambda *news: None).trace("Anna gave")) < 5e-3
    )
    app = opened(model="house-gpt", text="Anna gave")
    words = said(app)
    assert max(decimals("Entropy N nats", words)) <= 2
    assert max(decimals("Listed N . others N", words)) <= 3
    formula = " ".join(written.value for written in app.latex)
    assert set(decimals(r"e\^\{\\,\(-?N - \(?-?N", formula)) == {2}
    (chart,) = [e for e in app.get("plotly_chart") if "probability" in e.proto.spec]
    assert json.loads(chart.proto.spec)["data"][0]["hovertemplate"].startswith("logit %{x:.2f}")


def test_the_tokens_that_made_a_logit_are_told_with_their_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = opened("Which tokens made it?")
    model = engine().model("stories", lambda *news: None)
    trace = model.trace(TEXT)
    *_, found = relevances(model, trace, int(own_logits().argmax()))
    most = int(found.left_out.argmax())
    assert f"**·Hill** is {found.logit:.2f}" in said(app)
    assert f"by {found.left_out.max():.2f}." in said(app)
    assert trace.tokens[most].text.strip() in said(app)
    for values in (found.integrated, found.by_attention):
        correlation = rank_correlation(found.left_out, values)
        assert correlation is not None
        assert f"**{correlation:+.2f}**" in said(app)
    assert f"add up to {found.integrated.sum():.2f}" in said(app)
    (chart,) = app.get("plotly_chart")
    cells = numbers(json.loads(chart.proto.spec)["data"][-1]["z"])
    drawn = [found.left_out, found.integrated, found.by_attention]
    np.testing.assert_allclose(cells.reshape(-1, 3).T, drawn, rtol=1e-4, atol=1e-4)
    other = app.selectbox[0].options[1] if app.selectbox else None
    assert other
    assert re.search(f" 32 steps [^.]* {found.incomplete:.2g}", said(app))
    choose(app, "Against", 1)
    *_, contrast = relevances(
        model, trace, int(own_logits().argmax()), against=int(own_logits().argsort()[-2])
    )
    assert re.search(rf"minus .+\*\* is {contrast.logit:.2f}\.", said(app))
    choose(app, "Against", 0)
    press(app, "Integrate in 128 steps")
    *_, finer = relevances(model, trace, int(own_logits().argmax()), steps=128)
    assert finer.incomplete < found.incomplete
    assert re.search(f" 128 steps [^.]* {finer.incomplete:.2g}", said(app))
    monkeypatch.setattr(relevance_view, "FEW_STEPS", 0.0)
    choose(app, "Logit of", 1)
    assert "more than a tenth" in said(app)
    assert f"**·Hill** is {found.logit:.2f}" not in said(app)


def test_a_run_without_its_model_is_not_asked_which_tokens_made_it() -> None:
    """Its tokens cannot be left out; see the recorded runs."""
    assert control(opened(), "Show").options == list(VIEWS)


def test_passes_that_take_long_are_offered_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "UNASKED", 0)
    background.shared_passes.clear()
    app = opened("Which tokens made it?")
    tokens = engine().model("stories", lambda *news: None).tokens(TEXT)
    assert f"run {len(tokens)} times" in said(app)
    assert not app.get("plotly_chart")
    app.button(key="prediction-relevance-start").click().run()
    assert len(app.get("plotly_chart")) == 1
