"""The arcs above the map: as wide as the weights, and moved by pointer and keys."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Page, expect

from tests.browser.explorer.stage import Stage, middle
from tests.viz.explorer.records import record
from viz.explorer import Selection

WIDEST = 12  # pixels of an arc of weight 1
FAINT = 0.01  # smaller weights have no arc
ARCS = ".arcs:not(.ghosts)"
SHOWN = """(svg) => [...svg.children].filter((path) => path.style.display !== "none").map((path) => (
    { token: +path.dataset.token, weight: +path.dataset.weight, width: +path.getAttribute("stroke-width"),
      lit: path.classList.contains("lit") }))"""
Arc = dict[str, float]


def arcs(stage: Stage) -> list[Arc]:
    stage.ready()
    shown: list[Arc] = stage.root.locator(ARCS).evaluate(SHOWN)
    return shown


def expect_arcs(stage: Stage, weights: NDArray[np.floating], token: int) -> None:
    """To each token that a query attends to, as wide as its weight."""
    found = {int(arc["token"]): arc for arc in arcs(stage)}
    assert set(found) == set(np.flatnonzero(weights[token] >= FAINT).tolist())
    for other, arc in found.items():
        assert arc["weight"] == pytest.approx(weights[token, other], abs=1e-5)
        assert arc["width"] == pytest.approx(WIDEST * weights[token, other], abs=1e-3)


@pytest.mark.walk
@pytest.mark.parametrize("count", [13, 60])
@pytest.mark.parametrize("width", ["wide", "narrow"])
def test_arcs_are_as_wide_as_the_weights_and_stay_within_the_picture(
    mounted: Callable[[Page], Stage], request: pytest.FixtureRequest, count: int, width: str
) -> None:
    stage, attention = mounted(request.getfixturevalue(width)), record(count, kind="self")
    stage.send(attention, Selection(1, "weights", count - 1, 0))
    expect_arcs(stage, attention.weights(1), count - 1)
    beyond = stage.root.locator(ARCS).evaluate(
        """(svg) => { const room = svg.closest(".figure").getBoundingClientRect();
            return [...svg.children].filter((path) => path.style.display !== "none").map((path) =>
                path.getBoundingClientRect()).filter((box) => box.left < room.left - 1 ||
                    box.right > room.right + 1 || box.top < room.top - 1 || box.bottom > room.bottom + 1)
                .length }"""
    )
    assert beyond == 0


def test_pointer_tap_and_keys_move_the_arcs(stage: Stage) -> None:
    attention = record(6, kind="self")
    weights = attention.weights(0)
    stage.send(attention, Selection(0, "weights", 3, 1))
    stage.part("column-4").hover()
    expect_arcs(stage, weights, 4)
    stage.part("readout").hover()
    expect_arcs(stage, weights, 3)
    stage.part("column-5").click()
    stage.page.keyboard.press("ArrowLeft")
    stage.expect_cell(query=4)
    stage.part("readout").hover()
    expect_arcs(stage, weights, 4)


def test_a_cell_lights_its_arc_and_an_arc_its_cell(stage: Stage) -> None:
    attention = record(6, kind="self")
    stage.send(attention, Selection(0, "weights", 3, 1))
    key = int(attention.weights(0)[3].argmax())
    stage.part("figure").hover(position=middle(stage, 3, key, 6, 6))
    lit = [arc for arc in arcs(stage) if arc["lit"]]
    assert [arc["token"] for arc in lit] == [key]
    stage.part("figure").hover(position=middle(stage, 5, 2, 6, 6))
    expect_arcs(stage, attention.weights(0), 5)  # those of the row under the pointer
    stage.part("readout").hover()
    assert not [arc for arc in arcs(stage) if arc["lit"]]
    stage.root.locator(f"{ARCS} path[data-token='{key}']").dispatch_event(
        "pointerover", {"bubbles": True}
    )
    expect(stage.root.locator(".rings [data-ring]")).to_have_attribute("data-ring", f"3,{key}")
