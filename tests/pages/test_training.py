"""The training page: every training in every view, its numbers, its refusals, and a run of one's own."""

import base64
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model.training.checkpoints import shipped_training_run, shipped_training_runs
from tests.cases import cases
from tests.pages.reading import ODD_TEXTS, choose, control, press, said, visit
from viz.views.training.choice import CHARACTERS, LIST, workshop
from viz.views.training.player.message import PATTERN_NAMES

TITLES = {"induction": "Induction", "stories": "Stories", "translate-en-fr": "Translator"}


def opened(**parameters: str) -> AppTest:
    return visit("training", **parameters)


def opened_here() -> AppTest:
    """The page with the controls of a training of one's own."""
    return press(opened(), "Train one here")


def beside_page() -> None:
    from viz.shell import page
    from viz.shell.panel import draw_view
    from viz.views.training.views import beside

    page.open_page("pages/training.py")
    draw_view(beside)


def untrained_beside_trained(**parameters: str) -> AppTest:
    app = AppTest.from_function(beside_page, default_timeout=120)
    for name, value in parameters.items():
        app.query_params[name] = value
    return app.run()


def its(app: AppTest) -> Any:
    """The box of the sentence, or of the list."""
    (found,) = [box for box in app.text_input if box.label.startswith(("List", "Text"))]
    return found


def sent(app: AppTest) -> dict:
    """What the player's browser side was given."""
    (mounted,) = app.get("bidi_component")
    return json.loads(mounted.proto.json)


def maps(player: dict) -> np.ndarray:
    """(checkpoint, query, key): the weights as the browser reads them."""
    shape = len(player["queries"]), len(player["keys"])
    allowed = np.ones(shape, dtype=bool)
    if player["allowed"] is not None:
        allowed = np.frombuffer(base64.b64decode(player["allowed"]), np.uint8).reshape(shape) > 0
    found = np.zeros((len(player["steps"]), *shape), dtype=np.float32)
    sent = np.frombuffer(base64.b64decode(player["weights"]), "<f4")
    found[:, allowed] = sent.reshape(len(player["steps"]), -1)
    return found


def drawn(app: AppTest) -> list[dict]:
    """The heatmaps that are drawn, without those of masked cells."""
    charts = [json.loads(chart.proto.spec)["data"][-1] for chart in app.get("plotly_chart")]
    return [chart for chart in charts if chart["type"] == "heatmap"]


def test_the_page_opens_on_a_stripe_that_comes_from_nothing() -> None:
    player = sent(opened())
    training_run = shipped_training_run("induction")
    assert tuple(player["steps"]) == training_run.steps
    stripe = player["measures"][0]
    assert stripe["name"] == f"Mean {PATTERN_NAMES['induction']}"
    assert stripe["values"][0] < 0.1
    assert stripe["values"][-1] >= 0.8
    framed = np.frombuffer(base64.b64decode(player["framed"]), np.uint8).reshape(20, 20) > 0
    assert framed.sum() == 10
    np.testing.assert_allclose(maps(player)[:, framed].mean(1), stripe["values"], atol=1e-5)


@cases("name", TITLES)
def test_the_player_shows_each_checkpoints_own_weights_and_its_cards_scores(name) -> None:
    app = opened(training=TITLES[name])
    player, training_run = sent(app), shipped_training_run(name)
    label = control(app, "Head").value
    kind, head = "cross" if label.startswith("cross") else "self", int(label[-1])
    place = f"decoder.{label[-3]}.{kind}"
    text = its(app).value
    for at in (0, -1):
        model = training_run.model(training_run.steps[at])
        said_so = training_run.model(training_run.steps[-1]).trace(text).target_tokens
        ids = [token.id for token in said_so[1:]]
        weights = model.trace(text, "" if ids else None, continued=ids).find(place).weights(head)
        np.testing.assert_allclose(maps(player)[at], weights, atol=2e-5)
    told = {line["name"]: line for chart in player["charts"] for line in chart["lines"]}
    losses = [record["loss"] for record in training_run.history if "loss" in record]
    assert told["training loss"]["values"] == losses
    assert all(max(line["steps"]) == training_run.steps[-1] for line in told.values())
    assert len(player["movement"]["parts"]) == len(player["movement"]["sinceStart"][0])
    assert "model's own by" in said(app)


def test_every_training_that_was_shipped_can_be_chosen() -> None:
    assert set(TITLES) <= set(shipped_training_runs())
    assert len(control(opened(), "Training of").options) == len(shipped_training_runs())


def test_another_head_is_another_map_and_the_head_joins_the_link() -> None:
    app = opened()
    before = sent(app)
    choose(app, "Head", "L0H3")
    after = sent(app)
    assert after["title"] == "Head L0H3"
    assert after["weights"] != before["weights"]
    again = opened(**{"training-head-induction": "L0H3, previous-token head"})
    assert sent(again)["title"] == "Head L0H3"


@cases("title", TITLES.values())
def test_no_text_breaks_a_view_and_what_was_typed_stays(title) -> None:
    app = opened(training=title)
    for text in ("", " ", *ODD_TEXTS):
        typed = text[:CHARACTERS]  # the box takes no more
        its(app).set_value(typed).run()
        assert its(app).value == typed
        assert app.error or app.get("bidi_component") or drawn(app)
        assert "nan" not in said(app).casefold()


def test_a_list_of_other_symbols_gets_a_sentence_and_a_shuffled_one_is_read() -> None:
    app = opened()
    its(app).set_value("the cat").run()
    assert "does not know" in app.error[0].value
    press(app, "Shuffle")
    symbols = its(app).value.split()
    assert symbols[:10] == symbols[10:]
    assert len(set(symbols)) == 10
    assert sent(app)["measures"][0]["values"][-1] > 0.7


@pytest.fixture
def nobody_trains() -> Iterator[None]:
    """Runs that a test leaves behind are ended."""
    yield
    for ticket in range(1, 200):
        workshop().stop(ticket)
    workshop().wait(60)


def until(app: AppTest, holds: Callable[[AppTest], bool], *others: AppTest) -> None:
    """Looks again and again, as the pages of all visitors do every second."""
    end = time.monotonic() + 90
    while not holds(app):
        assert time.monotonic() < end, progress(app)
        time.sleep(0.05)
        for visitor in (app, *others):
            visitor.run()
            assert not visitor.exception


def progress(app: AppTest) -> str:
    return " ".join(bar.proto.text for bar in app.get("progress"))


@pytest.mark.usefixtures("nobody_trains")
def test_a_run_is_seen_growing_others_wait_in_the_queue_and_a_stopped_one_stays() -> None:
    mine, other = opened_here(), opened_here()
    press(mine, "Train")
    until(mine, lambda app: "Training: step" in progress(app))
    press(other, "Train")
    assert "You are next" in said(other)
    until(mine, lambda app: bool(app.get("bidi_component")) and len(sent(app)["steps"]) > 1, other)
    player = sent(mine)
    assert player["steps"][:2] == [0, 50]
    assert player["lastStep"] == 1000
    assert player["charts"][0]["lines"][0]["steps"][0] == 10
    press(mine, "Stop")
    assert "Stopped at step" in progress(mine)
    assert sent(mine)["steps"][:2] == [0, 50]
    until(other, lambda app: "Training: step" in progress(app))
    press(other, "Stop")


@pytest.mark.usefixtures("nobody_trains")
def test_who_leaves_the_queue_is_out_of_it_and_can_ask_again() -> None:
    mine, other = opened_here(), opened_here()
    press(mine, "Train")
    press(other, "Train")
    other.button(key="training-leave").click().run()
    assert "training-leave" not in [one.key for one in other.button]
    press(mine, "Stop")
    press(other, "Train")
    until(other, lambda app: "Training: step" in progress(app))


def test_the_list_of_a_run_of_ones_own_starts_as_the_known_one() -> None:
    app = opened_here()
    assert its(app).value == LIST
    assert not app.get("bidi_component")
    press(app, "← Recorded trainings")
    assert app.get("bidi_component")
