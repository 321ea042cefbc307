"""A layer comes from Python once; one that has been here before is shown at once, and told afterwards."""

import numpy as np
import pytest
from playwright.sync_api import expect

from model.trace.records import Attention
from tests.browser.explorer.stage import Stage, expected
from tests.viz.explorer.records import record
from viz.explorer import Selection
from viz.explorer.message import parts, payload

RUN = tuple(record(6, layer=layer, seed=layer) for layer in range(3))
FIRST, SECOND, THIRD = RUN


@pytest.fixture
def offered(stage: Stage) -> Stage:
    """The first layer of a run, with the others to choose."""
    stage.run = RUN
    stage.send(FIRST)
    return stage


@pytest.fixture
def visited(offered: Stage) -> Stage:
    """The first layer again, after the two others were here."""
    for layer in (SECOND, THIRD, FIRST):
        offered.send(layer)
    return offered


def part_of(layer: Attention) -> list[str]:
    tokens = ["a"] * 6
    return list(parts(payload(layer, queries=tokens, keys=tokens, head=0, check=0.0)))


def told(layer: Attention, *, lost: bool = False) -> dict[str, object]:
    return {"name": layer.name, "lost": lost}


def test_a_layer_is_asked_for_and_drawn_when_python_sends_it(offered: Stage) -> None:
    offered.part("head-2").click()
    offered.part("layer-1").click()
    assert offered.asked() == [told(SECOND)]
    expect(offered.part("layer-1")).to_be_checked()
    expect(offered.part("title")).to_contain_text("L0H2")
    offered.send(SECOND)
    expect(offered.part("title")).to_contain_text("L1H2")
    np.testing.assert_allclose(offered.drawn(), expected(SECOND, "weights", 2), atol=1e-6)


def test_a_layer_that_has_been_here_is_drawn_before_python_answers(visited: Stage) -> None:
    visited.part("head-2").click()
    visited.part("layer-1").click()
    expect(visited.part("title")).to_contain_text("L1H2")
    np.testing.assert_allclose(visited.drawn(), expected(SECOND, "weights", 2), atol=1e-6)
    assert visited.asked() == [told(SECOND)]
    visited.post(SECOND, held=part_of(SECOND))
    visited.part("stage-output").click()
    np.testing.assert_allclose(visited.drawn(), expected(SECOND, "output", 2), atol=1e-6)


def test_of_two_layers_chosen_quickly_the_last_one_is_told(visited: Stage) -> None:
    visited.click_at_once("layer-1", "layer-2")
    expect(visited.part("title")).to_contain_text("L2H0")
    np.testing.assert_allclose(visited.drawn(), expected(THIRD, "weights", 0), atol=1e-6)
    assert visited.asked() == [told(THIRD)]


def test_what_python_sent_before_it_heard_of_the_layer_does_not_take_it_away(
    visited: Stage,
) -> None:
    visited.part("layer-2").click()
    expect(visited.part("title")).to_contain_text("L2H0")
    visited.post(FIRST, revision=1)
    expect(visited.part("layer-2")).to_be_checked()
    expect(visited.part("title")).to_contain_text("L2H0")
    visited.post(THIRD, held=part_of(THIRD))
    visited.send(FIRST, revision=2)  # and later, a link to the first layer does
    expect(visited.part("title")).to_contain_text("L0H0")


def test_the_same_layer_of_another_run_is_another_one(visited: Stage) -> None:
    other = record(6, layer=0, seed=9)
    visited.send(other, run="other")
    visited.part("layer-1").click()
    assert visited.asked() == [told(SECOND)]
    expect(visited.part("title")).to_contain_text("L0H0")


def test_a_layer_keeps_the_choice_and_the_check_of_now(visited: Stage) -> None:
    visited.send(FIRST, Selection(2, "scaled", 4, 2), revision=1, check=7e-7)
    visited.part("layer-1").click()
    expect(visited.part("title")).to_contain_text("L1H2")
    visited.expect_cell(head=2, stage="scaled", query=4, key=2)
    expect(visited.part("check")).to_contain_text("7e\u22127")


def test_a_layer_that_was_here_before_needs_no_numbers(offered: Stage) -> None:
    """Also beside another one, and after the page was left and opened again."""
    changed = record(6, layer=0, seed=7)
    offered.send(changed, baseline=FIRST)
    offered.post(FIRST, held=part_of(FIRST))
    expect(offered.root).not_to_have_class("explorer compared")
    np.testing.assert_allclose(offered.drawn(), expected(FIRST, "weights", 0), atol=1e-6)
    again = Stage(offered.page)
    again.post(changed, baseline=FIRST, held=[*part_of(changed), *part_of(FIRST)])
    expect(again.root).to_have_class("explorer compared")
    np.testing.assert_allclose(again.drawn(1), expected(changed, "weights", 0), atol=1e-6)


def test_a_layer_whose_numbers_had_to_make_room_is_asked_for_again(offered: Stage) -> None:
    for seed in range(10, 16):
        offered.send(record(6, seed=seed))
    offered.post(FIRST, held=part_of(FIRST))
    assert offered.asked() == [told(FIRST, lost=True)]
    offered.send(FIRST)
    expect(offered.part("title")).to_contain_text("L0H0")
    np.testing.assert_allclose(offered.drawn(), expected(FIRST, "weights", 0), atol=1e-6)


def test_an_explorer_that_lost_its_numbers_shows_them_as_soon_as_they_come(stage: Stage) -> None:
    lost = record(6, layer=2, seed=20)
    stage.post(lost, Selection(1, "scaled", 3, 1), held=part_of(lost))
    assert stage.asked() == [told(lost, lost=True)]
    stage.send(lost, Selection(1, "scaled", 3, 1))
    np.testing.assert_allclose(stage.drawn(), expected(lost, "scaled", 1), atol=1e-6)
    stage.expect_cell(head=1, stage="scaled", query=3, key=1)
