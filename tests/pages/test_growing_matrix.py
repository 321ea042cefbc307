"""The picture of a text that is still being written: its words, and the rows of the chosen head so far."""

import json
import threading
from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model import load_model
from model.analysis.tokens.live_writing import Choice, Writing, live_writing
from model.analysis.tokens.prediction import Sampling
from model.serving.engine import Request
from tests.pages.reading import control, numbers, said, visit
from viz.shell import background
from viz.views.prediction.writing import key_of

TEXT = "Tom Hill saw a red ball. Anna gave the ball to Tom"


def under_way(name: str, text: str, place: str) -> None:
    """A page with what is known after three tokens."""
    from itertools import islice

    import streamlit as st

    from model.analysis.tokens.live_writing import Choice, live_writing
    from model.analysis.tokens.prediction import Sampling
    from model.serving.engine import Request
    from viz.shell.background import Passes
    from viz.state.link import View
    from viz.state.look import Look
    from viz.views.prediction.writing import growing

    st.session_state["view"] = View(model=name, text=text, place=place, head=1)
    look, run = Look(Request(name, text)), Passes()
    tokens = look.model.tokens(text)
    states = live_writing(look.model, tokens, Choice(Sampling()), steps=5)
    run.found = list(islice(states, 3))[-1]
    growing(look, tokens, run)


def test_the_rows_so_far_are_those_of_one_pass_over_the_text(subtests: pytest.Subtests) -> None:
    for name, text, place in [
        ("house-gpt", TEXT, "decoder.2.self"),
        ("translate-en-fr", "the black cat sees the dog", "decoder.0.cross"),
    ]:
        with subtests.test(name=name):
            app = AppTest.from_function(
                under_way, args=(name, text, place), default_timeout=120
            ).run()
            assert not app.exception
            model = load_model(name)
            ids = [token.id for token in model.generate(text, limit=3)]
            target = "" if model.config.shape == "encoder-decoder" else None
            record = model.trace(text, target, continued=ids[:2]).find(place)
            (chart,) = app.get("plotly_chart")
            *_, cells = json.loads(chart.proto.spec)["data"]
            drawn = numbers(cells["z"]).reshape(record.weights(1).shape)
            hidden = np.isnan(drawn)
            np.testing.assert_allclose(np.where(hidden, 0, drawn), record.weights(1), atol=1e-5)
            assert hidden.any() == (record.kind == "causal")
            (words,) = [one.proto.body for one in app.get("html") if "<mark" in one.proto.body]
            assert words.count("<u>") == 1
            assert model.tokenizer.named(ids)[-1].text.strip() in words.split("<u>")[1]


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
        app = visit("prediction", model="house-gpt", text=text, show="Token by token")
        assert "Step" not in [slider.label for slider in app.slider]
        app.button(key="prediction-writing-stop").click().run()
        assert "Stopped after 3 tokens." in said(app)
        assert control(app, "Step").max == 3
        assert not run.ended.is_set()
    finally:
        left.set()
        run.stopped.set()
