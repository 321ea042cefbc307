"""Attention taken apart: a score as a sum on every model, the walk from part to part and back."""

import re

import pytest
from streamlit.testing.v1 import AppTest

from model.analysis import score_parts
from model.loading.registry import models
from tests.model.tiny import sentence
from tests.pages.reading import choose, own, said, visit

CHECK = re.compile(r"add up to (−?[\d.]+); .* (−?[\d.]+), a difference of ([\de−.]+)\.")
WHY = "Why this score?"
STEPS = [
    ("why-key-0", "L0H2 · ·Hill → Tom"),
    ("walk-0", "L1H7 · ·Tom → ·Hill"),
    ("why-query-0", "L0H1 · ·Tom → "),
]


def opened(**parameters: str) -> AppTest:
    return visit("attention", show=WHY, **parameters)


def totals(app: AppTest) -> tuple[float, float, float]:
    """The sum of the parts, the recorded number, and the difference that the page tells."""
    found = CHECK.search(said(app))
    assert found is not None
    sum_, recorded, apart = (float(number.replace("−", "-")) for number in found.groups())
    return sum_, recorded, apart


@pytest.mark.parametrize("model", sorted(models))
def test_the_parts_of_a_score_add_up_on_every_model(model: str) -> None:
    text = sentence(own(model))
    place = own(model).attention_names[-1]
    for more in ({}, {"mask": "none", "scale": "1"}):
        app = opened(model=model, text=text, place=place, head="1", query="3", key="2", **more)
        for shown in ("The score", "Above the row's mean"):
            choose(app, "Picture", shown)
            sum_, recorded, apart = totals(app)
            assert apart <= 1e-4 * max(1, abs(recorded))
            assert abs(sum_ - recorded) <= apart + 2e-6


def test_one_walks_from_the_surname_to_the_previous_token_head_and_back() -> None:
    app = opened()
    assert "**16.99**, is what **L0H1** wrote at **·Tom**" in said(app)
    assert "what **L0H2** wrote at **·Hill**, in the key" in said(app)
    assert totals(app)[:2] == pytest.approx((42.519524, 42.519530), abs=2e-5)
    for key, title in STEPS:
        app.button(key=key).click().run()
        assert not app.exception
        assert f"**{title}" in said(app)
    assert "← L1H7 · ·Tom → ·Hill" in app.button(key="walk-0").label.replace("\\", "")
    assert app.query_params["place"] == "decoder.0.self"


def test_a_chosen_cell_is_split_and_another_sentence_forgets_the_walk() -> None:
    app = opened()
    app.button(key="why-key-0").click().run()
    choose(app, "Query", 5)
    choose(app, "Key", 2)
    model = own("house-gpt")
    trace = model.trace("Tom Hill saw a red ball. Anna gave the ball to Tom")
    parts = score_parts(model, trace, "decoder.0.self", 2, 5, 2)
    assert totals(app)[:2] == pytest.approx((parts.total, parts.recorded), abs=2e-6)
    again = opened(text="The dog saw the cat", query="99", key="99")
    assert not [button for button in again.button if button.key == "walk-0"]
    assert "L1H7 · ·cat → ·cat" in said(again)


def test_a_row_of_one_key_has_nothing_above_its_mean() -> None:
    app = opened(query="0", key="0")
    choose(app, "Picture", "Above the row's mean")
    assert "No pair of parts raises it" in said(app)
    assert totals(app)[1] == 0


def test_what_cannot_be_split_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("This model rotates its queries in a way that is not covered.")

    monkeypatch.setattr("model.analysis.attribution.score_parts.score_parts", refuse)
    app = opened(query="7", key="3")
    assert "rotates its queries" in said(app)
