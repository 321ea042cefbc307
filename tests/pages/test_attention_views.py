"""The drawers of a cell on Explore: a score as a sum on every model, the walk from part to part and back."""

import re
from dataclasses import replace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model.analysis import score_parts
from model.analysis.attribution.score_parts import EdgeValues, edge_values, projected
from model.loading.registry import models
from tests.cases import cases
from tests.model.tiny import sentence
from tests.pages.reading import choose, control, numbers, own, said, traces, visit

EDGES_CHECK = re.compile(
    r"together [=≈] (−?[\d.]+)\. The model's own is (−?[\d.]+), a difference of ([\de−.]+)\."
)
CHECK = re.compile(r"add up to (−?[\d.]+); .* (−?[\d.]+), a difference of ([\de−.]+)\.")
RECORDED = re.compile(r"The model recorded \*\*([\d.,−e]+)\*\*; difference ([\de−.]+)\.")
WHY = "Why?"
TEXT = "Tom Hill saw a red ball. Anna gave the ball to Tom"
STEPS = [
    ("why-head-1", "L0H2: **·Hill** → **Tom**"),
    ("walk-0", "L1H7: **·Tom** → **·Hill**"),
    ("why-head-0", "L0H1: **·Tom** → "),
]


def opened(show: str = WHY, **parameters: str) -> AppTest:
    return visit("home", show=show, **parameters)


def totals(app: AppTest, check: re.Pattern[str] = CHECK) -> tuple[float, float, float]:
    """The sum of the parts, the recorded number, and the difference that the page tells."""
    found = check.search(said(app))
    sum_, recorded, apart = (float(number.replace("−", "-")) for number in found.groups())
    return sum_, recorded, apart


@cases("model", sorted(models))
def test_the_parts_of_a_score_add_up_on_every_model(model) -> None:
    text = sentence(own(model))
    place = own(model).attention_names[-1]
    for more in ({}, {"mask": "none", "scale": "1"}):
        app = opened(model=model, text=text, place=place, head="1", query="3", key="2", **more)
        for shown in ("The score", "Above its row's mean"):
            choose(app, "Why", shown)
            sum_, recorded, apart = totals(app)
            assert apart <= 1e-4 * max(1, abs(recorded))
            assert abs(sum_ - recorded) <= apart + 2e-4 * max(1, abs(recorded))


def test_one_walks_from_the_surname_to_the_previous_token_head_and_back() -> None:
    app = opened()
    assert re.search(r"\*\*16\.99\*\*[^.]*\*\*L0H1\*\*[^.]*\*\*·Tom\*\*[^.]*query", said(app))
    assert re.search(r"\*\*L0H2\*\*[^.]*\*\*·Hill\*\*[^.]*key", said(app))
    assert totals(app)[:2] == pytest.approx((42.519524, 42.519530), abs=6e-5)
    for key, title in STEPS:
        app.button(key=key).click().run()
        assert not app.exception
        assert title in said(app)
    assert "← L1H7: ·Tom → ·Hill" in app.button(key="walk-0").label.replace("\\", "")
    assert app.query_params["place"] == "decoder.0.self"


def test_a_chosen_cell_is_split_and_another_sentence_forgets_the_walk() -> None:
    app = opened()
    app.button(key="why-head-1").click().run()
    app.session_state["view"] = replace(app.session_state["view"], query=5, key=2)
    app.run()
    model = own("house-gpt")
    trace = model.trace(TEXT)
    parts = score_parts(model, trace, "decoder.0.self", 2, 5, 2)
    assert totals(app)[:2] == pytest.approx((parts.total, parts.recorded), abs=6e-5)
    again = opened(text="The dog saw the cat", query="99", key="99")
    assert not [button for button in again.button if button.key == "walk-0"]
    assert "L1H7: **·cat** → **·cat**" in said(again)


def test_a_row_of_one_key_has_nothing_above_its_mean() -> None:
    app = opened(query="0", key="0")
    choose(app, "Why", "Above its row's mean")
    assert "No pair" in said(app)
    assert totals(app)[1] == 0


def test_what_cannot_be_split_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("This model rotates its queries in a way that is not covered.")

    monkeypatch.setattr("model.analysis.attribution.score_parts.score_parts", refuse)
    app = opened(query="7", key="3")
    assert "rotates its queries" in said(app)


@pytest.mark.slow
@cases("model", sorted(models))
def test_a_number_of_a_vector_is_the_sum_of_its_products_on_every_model(model) -> None:
    text, place = sentence(own(model)), own(model).attention_names[-1]
    app = opened(model=model, text=text, place=place, head="1", query="2", key="2")
    choose(app, "Why", "A sum of products")
    choose(app, "Dimension", 3)
    recorded = own(model).trace(text).find(place)
    for side, vectors in (("query", recorded.query), ("key", recorded.key)):
        choose(app, "Vector", side)
        told = RECORDED.search(said(app))
        assert float(told[1].replace("−", "-")) == pytest.approx(vectors[1, 2, 3], abs=1e-4)
        assert float(told[2].replace("−", "-")) <= 1e-4 * max(1, float(np.abs(vectors).max()))
        made = projected(own(model), own(model).trace(text), place, 1, 2, side)
        bars = numbers(traces(app)[0]["x"])  # the largest, the rest as one, and the bias
        assert bars.sum() == pytest.approx(made.sums[3], abs=1e-4)
        largest = np.sort(np.abs(made.products(3)))[::-1][:12]
        assert np.abs(bars[:12]) == pytest.approx(largest, abs=1e-5)
    turned = own(model).config.turns_positions and recorded.kind != "cross"
    assert ("Rotary positions then" in said(app)) == turned


def test_a_vector_that_no_map_gives_is_refused_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("The query vectors cannot be split into parts.")

    monkeypatch.setattr("model.analysis.attribution.score_parts.projected", refuse)
    app = opened()
    choose(app, "Why", "A sum of products")
    assert "cannot be split" in said(app)


@pytest.mark.slow
@cases("model", sorted(models))
def test_edges_and_all_else_add_up_to_the_logit_on_every_model(model) -> None:
    text = sentence(own(model))
    for place in own(model).attention_names[:: max(1, len(own(model).attention_names) - 1)]:
        app = opened("Carries", model=model, text=text, place=place, head="1", query="3", key="2")
        (lengths,) = re.findall(r"length (\S+); .*? length (\S+)\. ", said(app))
        assert lengths[0] == lengths[1]  # of the sum of the edges, and recorded
        choose(app, "Carries", "The whole head")
        assert re.search(r"first token, \S+ has \d+%; .* \d+%", said(app))
        if not place.startswith("decoder"):
            assert "In a logit" not in control(app, "Carries").options
            continue
        choose(app, "Carries", "In a logit")
        attention = own(model).trace(text).find(place)
        mask = attention.mask_of(1)
        count = attention.sizes[2] if mask is None else int(mask[3].sum())
        for against in (0, 3):
            choose(app, "Rather than", against)
            assert f"Check: {count} edges" in said(app)  # without those that are masked
            sum_, recorded, apart = totals(app, EDGES_CHECK)
            assert apart <= 1e-4 * max(1, abs(recorded))
            assert abs(sum_ - recorded) <= apart + 2e-4


def test_a_logit_is_held_against_that_of_another_word_of_the_sentence() -> None:
    app = opened("Carries")
    choose(app, "Carries", "In a logit")
    logits = own("house-gpt").trace(TEXT).require_prediction().after(12)
    hill, ball = (own("house-gpt").tokens(f"a {word}")[1].id for word in ("Hill", "ball"))
    assert re.search(rf"\*\*·Hill\*\*, [^*]*\*\*·Tom\*\*[^.]* {logits[hill]:.2f}", said(app))
    names = control(app, "Rather than").options
    place = next(at for at, name in enumerate(names) if name.startswith("·ball"))
    choose(app, "Rather than", place)
    assert re.search(r"\*\*·Hill\*\* [^.]*\*\*·ball\*\*", said(app))
    assert totals(app, EDGES_CHECK)[1] == pytest.approx(
        float(logits[hill] - logits[ball]), abs=1e-4
    )


def test_what_the_first_token_carries_is_told_only_where_it_is_little() -> None:
    place, head, query = "encoder.5.self", 7, 8
    link = {"place": place, "head": str(head), "query": str(query)}
    app = opened("Carries", model="minilm", text=TEXT, **link)
    edges = edge_values(own("minilm"), own("minilm").trace(TEXT), place, head)
    weight, carried = edges.weights[query, 0], edges.norms[query]
    told = (
        f"takes {weight:.0%} of this row's weight but carries only {carried[0] / carried.sum():.0%}"
    )
    assert told in said(app)
    app = opened("Carries", query="2", key="0")  # here it has the weight, and carries the most
    assert re.search(r"\*\*Tom\*\* [^.]*, 0\.99", said(app))
    assert "The first token" not in said(app)


def test_a_logit_that_cannot_be_split_is_refused_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ValueError("Parts of another sentence's stream were put into this run.")

    monkeypatch.setattr(EdgeValues, "logit", refuse)
    app = opened("Carries")
    choose(app, "Carries", "In a logit")
    assert "Parts of another" in said(app)
