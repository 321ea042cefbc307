"""Beam search on the prediction page: the tree that is drawn, and what is said of both texts."""

import json
import re

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model.analysis.tokens.live_writing import BeamSearch, beam_search
from tests.pages.reading import ODD_TEXTS, numbers, said, visit
from viz.notation.labels import drawn_letters, token_label
from viz.state.engine import engine

pytestmark = pytest.mark.slow

TEXT = "Tom Hill saw a red ball. Anna gave the ball to Tom"
SOURCE = "the black cat sees the dog"


def opened(model: str = "stories", text: str = TEXT, steps: int = 4) -> AppTest:
    asked = {"prediction-how": "the best beams", "prediction-beam-steps": str(steps)}
    app = visit("prediction", model=model, text=text, show="Token by token", **asked)
    return app


def searched(model: str = "stories", text: str = TEXT, steps: int = 4) -> BeamSearch:
    loaded = engine().model(model, lambda *news: None)
    *_, found = beam_search(loaded, loaded.trace(text), beams=3, steps=steps)
    return found


def test_the_tree_of_a_beam_search_has_its_totals_and_the_greedy_path(
    subtests: pytest.Subtests,
) -> None:
    for name, text, steps in [("stories", TEXT, 4), ("translate-en-fr", SOURCE, 8)]:
        with subtests.test(name=name):
            app, found = opened(name, text, steps), searched(name, text, steps)
            model = engine().model(name, lambda *news: None)
            (chart,) = [e for e in app.get("plotly_chart") if "dropped" in e.proto.spec]
            drawn = {
                one["name"]: one for one in json.loads(chart.proto.spec)["data"] if one.get("name")
            }
            kept, dropped = (
                [label.split("<br>") for label in drawn[fate]["text"]]
                for fate in ("kept", "dropped")
            )
            assert len(kept) == sum(len(step.kept) for step in found.steps)
            assert len(dropped) == sum(len(step.dropped) for step in found.steps)
            totals = [one.total for step in found.steps for one in step.kept]
            assert [float(label[2].replace("−", "-")) for label in kept] == pytest.approx(
                totals, abs=0.006
            )
            greedy = [token.text for token in model.generate(text, limit=steps)]
            at = [drawn["greedy"][axis] for axis in "xy"]
            labels = dict(
                zip(zip(drawn["kept"]["x"], drawn["kept"]["y"], strict=True), kept, strict=True)
            )
            followed = [
                drawn_letters(labels[point][0])
                for point in zip(*map(numbers, at), strict=True)
                if point in labels
            ]
            assert followed == [token_label(word, 8) for word in greedy][: len(followed)]
            assert len(followed) >= 2


def test_a_sentence_says_which_text_is_more_probable_and_by_how_much() -> None:
    app, found = opened(), searched()
    told = re.search(
        r"log-probability −(\S+), greedy .* −(\S+)\. .*? is (\S+) times",
        said(app).replace("\\", ""),
    )
    assert told is not None
    best, greedy, times = map(float, told.groups())
    assert (-best, -greedy) == pytest.approx((found.best.total, found.greedy.total), abs=1e-3)
    assert times == pytest.approx(np.exp(found.best.total - found.greedy.total), rel=0.01)
    assert "Check: one pass" in said(app)
    app = opened("translate-en-fr", SOURCE)
    assert "the same text" in said(app)


def test_a_full_context_leaves_the_search_one_step() -> None:
    assert "for 1 step" in said(opened(text="cat " * 127 + "cat"))


def test_it_says_where_the_search_dropped_a_better_text_that_greedy_found() -> None:
    text = "Anna gave the ball to Tom"
    found = searched(text=text, steps=5)
    assert found.greedy.total > found.best.total
    inside = [step.greedy in step.kept for step in found.steps]
    told = f"at step {inside.index(False) + 1} "
    app = opened(text=text, steps=5)
    assert told in said(app)
    assert "Here greedy's is" in said(app).replace("\\", "")
    (chart,) = [e for e in app.get("plotly_chart") if "dropped" in e.proto.spec]
    (path,) = [
        one
        for one in json.loads(chart.proto.spec)["data"]
        if one.get("name") == "greedy" and one["mode"] == "lines"
    ]
    assert numbers(path["x"]).tolist() == [0, 1, 2, 3, 4, 5]


def test_no_text_breaks_the_search(subtests: pytest.Subtests) -> None:
    for text in ODD_TEXTS:
        with subtests.test(text=text):
            app = opened("house-gpt", text)
            assert not app.error
            assert "<script>alert" not in "".join(e.proto.spec for e in app.get("plotly_chart"))
