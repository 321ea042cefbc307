"""Another layer is drawn from its address and told to Python then; where it cannot be, it is asked for."""

import numpy as np
import pytest
from playwright.sync_api import expect

from model.trace.records import Attention
from tests.browser.explorer.stage import Stage, expected
from tests.viz.explorer.records import record
from viz.explorer import Selection
from viz.explorer.message import parts, payload

RUN = [record(6, layer=layer, seed=layer) for layer in range(3)]
FIRST, SECOND, THIRD = RUN


@pytest.fixture
def offered(stage: Stage) -> Stage:
    """The first layer of a run, with the others at their address."""
    stage.offer(*RUN)
    stage.send(FIRST)
    return stage


def part_of(layer: Attention) -> list[str]:
    tokens = ["a"] * 6
    return list(parts(payload(layer, queries=tokens, keys=tokens, head=0, check=0.0)))


def test_a_layer_is_drawn_from_its_address_and_told_once(offered: Stage) -> None:
    offered.part("head-2").click()
    offered.part("layer-1").click()
    expect(offered.part("title")).to_contain_text("L1H2")
    np.testing.assert_allclose(offered.drawn(), expected(SECOND, "weights", 2), atol=1e-6)
    assert offered.asked() == [{"name": SECOND.name, "fetched": part_of(SECOND)}]
    assert offered.requests == [SECOND.name]


def test_what_python_sends_of_it_then_needs_no_numbers(offered: Stage) -> None:
    offered.part("layer-1").click()
    expect(offered.part("title")).to_contain_text("L1H0")
    offered.post(SECOND, held=part_of(SECOND))
    offered.part("stage-output").click()
    np.testing.assert_allclose(offered.drawn(), expected(SECOND, "output", 0), atol=1e-6)
    assert offered.requests == [SECOND.name]


def test_of_two_layers_chosen_quickly_the_last_one_counts(offered: Stage) -> None:
    last = offered.part("layer-2").element_handle()
    offered.part("layer-1").evaluate("(first, last) => { first.click(); last.click(); }", last)
    expect(offered.part("title")).to_contain_text("L2H0")
    np.testing.assert_allclose(offered.drawn(), expected(THIRD, "weights", 0), atol=1e-6)
    assert [one["name"] for one in offered.asked()] == [THIRD.name]


def test_what_python_sent_before_it_heard_of_the_layer_does_not_take_it_away(
    offered: Stage,
) -> None:
    offered.part("layer-2").click()
    expect(offered.part("title")).to_contain_text("L2H0")
    offered.post(FIRST, revision=1)
    expect(offered.part("layer-2")).to_be_checked()
    expect(offered.part("title")).to_contain_text("L2H0")
    offered.post(THIRD, held=part_of(THIRD))
    offered.send(FIRST, revision=2)  # and later, a link to the first layer does
    expect(offered.part("title")).to_contain_text("L0H0")


def test_where_nothing_is_at_the_address_python_is_asked(offered: Stage) -> None:
    offered.away = True
    offered.part("layer-1").click()
    assert offered.asked() == [{"name": SECOND.name, "fetched": []}]
    expect(offered.part("title")).to_contain_text("L0H0")
    offered.send(SECOND)
    expect(offered.part("title")).to_contain_text("L1H0")
    np.testing.assert_allclose(offered.drawn(), expected(SECOND, "weights", 0), atol=1e-6)


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
    assert again.requests == offered.requests == []


def test_a_layer_that_had_to_make_room_is_fetched_again(offered: Stage) -> None:
    for seed in range(10, 16):
        offered.send(record(6, seed=seed))
    offered.post(FIRST, held=part_of(FIRST))
    expect(offered.part("title")).to_contain_text("L0H0")
    np.testing.assert_allclose(offered.drawn(), expected(FIRST, "weights", 0), atol=1e-6)
    assert offered.requests == [FIRST.name]


def test_an_explorer_that_lost_its_numbers_fetches_them_again(stage: Stage) -> None:
    lost = record(6, layer=2, seed=20)
    stage.offer(lost)
    stage.post(lost, Selection(1, "scaled", 3, 1), held=part_of(lost))
    expect(stage.part("title")).to_contain_text("L2H1")
    np.testing.assert_allclose(stage.drawn(), expected(lost, "scaled", 1), atol=1e-6)
    stage.expect_cell(head=1, stage="scaled", query=3, key=1)
    assert stage.requests == [lost.name]


def test_an_explorer_that_cannot_fetch_them_again_asks_for_all(stage: Stage) -> None:
    lost = record(6, layer=2, seed=21)
    stage.offer(lost)
    stage.away = True
    stage.post(lost, held=part_of(lost))
    assert stage.asked() == [{"name": lost.name, "fetched": []}]
    stage.send(lost)
    np.testing.assert_allclose(stage.drawn(), expected(lost, "weights", 0), atol=1e-6)
