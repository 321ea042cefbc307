"""Another layer is drawn from its address and told to Python then; where it cannot be, it is asked for."""

import numpy as np
import pytest
from playwright.sync_api import expect

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


def part_of(layer: object) -> list[object]:
    tokens = ["a"] * 6
    return parts(payload(layer, queries=tokens, keys=tokens, head=0, check=0.0))  # type: ignore[arg-type]


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
    offered.post(SECOND, bare=True)
    offered.part("stage-output").click()
    np.testing.assert_allclose(offered.drawn(), expected(SECOND, "output", 0), atol=1e-6)
    assert offered.requests == [SECOND.name]


def test_of_two_layers_chosen_quickly_the_last_one_counts(offered: Stage) -> None:
    offered.part("layer-1").click()
    offered.part("layer-2").click()
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
    offered.post(THIRD, bare=True)
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


def test_an_explorer_that_lost_its_numbers_fetches_them_again(stage: Stage) -> None:
    stage.offer(*RUN)
    stage.post(THIRD, Selection(1, "scaled", 3, 1), bare=True)
    expect(stage.part("title")).to_contain_text("L2H1")
    np.testing.assert_allclose(stage.drawn(), expected(THIRD, "scaled", 1), atol=1e-6)
    stage.expect_cell(head=1, stage="scaled", query=3, key=1)


def test_an_explorer_that_cannot_fetch_them_again_asks_for_all(stage: Stage) -> None:
    stage.offer(*RUN)
    stage.away = True
    stage.post(THIRD, bare=True)
    assert stage.asked() == [{"name": THIRD.name, "fetched": []}]
    stage.send(THIRD)
    np.testing.assert_allclose(stage.drawn(), expected(THIRD, "weights", 0), atol=1e-6)
