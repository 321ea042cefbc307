"""The words beside the picture lead to what they name; the picture fits the window."""

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.explorer.stage import Stage
from tests.viz.explorer.records import labels, record, staged
from viz.explorer import Selection
from viz.explorer.message import HeadClaim, LinkedWords, Ring
from viz.notation.readout import readout

CLAIM = HeadClaim(
    "decoder.2.self",
    1,
    "What to look for.",
    (
        LinkedWords("Look at "),
        LinkedWords("the last token", (Ring(query=5),)),
        LinkedWords(", then at "),
        LinkedWords("“·cat”", (Ring(5, 1),)),
        LinkedWords(", "),
        LinkedWords("the line below the diagonal", (Ring(diagonal=-1),)),
        LinkedWords(" and "),
        LinkedWords("head 2", (), None, 2),
        LinkedWords("."),
    ),
)


def rings(stage: Stage) -> list[str]:
    found = stage.root.locator(".rings [data-ring]").all()
    return [one.get_attribute("data-ring") or "" for one in found]


def link(stage: Stage, words: str) -> Locator:
    return stage.part("look-for").get_by_role("button", name=words)


def test_words_that_name_a_row_a_cell_or_a_line_ring_it(stage: Stage) -> None:
    stage.send(record(6), Selection(1, "query", 3, 1), claims=[CLAIM])
    said = "What to look for. Look at the last token, then at “·cat”, the line below the diagonal and head 2."
    expect(stage.part("look-for")).to_have_text(said)
    link(stage, "the last token").click()
    stage.expect_cell(stage="weights", query=3, key=1)  # a matrix of tokens; the chosen cell stays
    assert rings(stage) == ["5,null"]
    box = stage.root.locator(".marks rect").first.bounding_box()
    ring = stage.root.locator(".rings [data-ring]").bounding_box()
    assert box is not None
    assert ring is not None
    assert ring["y"] + ring["height"] == pytest.approx(box["y"] + box["height"], abs=4)
    assert ring["width"] == pytest.approx(box["width"], abs=8)
    link(stage, "“·cat”").click()
    assert rings(stage) == ["5,1"]
    link(stage, "the line below the diagonal").click()
    assert rings(stage) == [f"{row},{row - 1}" for row in range(1, 6)]


def test_a_claim_stands_there_for_its_own_head_only(stage: Stage) -> None:
    stage.send(record(6), Selection(0, "weights", 3, 1), claims=[CLAIM])
    expect(stage.part("look-for")).to_be_hidden()
    expect(stage.part("look-for")).to_have_text("")
    stage.part("head-1").click()
    expect(stage.part("look-for")).to_be_visible()
    link(stage, "head 2").click()
    stage.expect_cell(head=2)
    expect(stage.part("look-for")).to_be_hidden()


@pytest.mark.parametrize("count", [6, 24])
@pytest.mark.parametrize("height", [700, 900])
def test_the_whole_map_and_the_filled_formula_fit_the_window(
    stage: Stage, count: int, height: int
) -> None:
    stage.page.set_viewport_size({"width": 1200, "height": height})
    stage.send(record(count), Selection(0, "weights", count - 1, 0))
    for part in ("figure", "numbers-formula", "readout"):
        box = stage.part(part).bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= height, part
    figure = stage.part("figure").bounding_box()
    assert figure is not None
    cell = stage.root.locator("[data-mark=cell]").bounding_box()
    assert cell is not None
    assert cell["y"] + cell["height"] <= height
    if count == 24:  # no smaller than the room allows
        assert figure["height"] == pytest.approx(height - figure["y"] - 80, abs=30)


def test_the_panel_stays_while_the_map_scrolls(stage: Stage) -> None:
    stage.page.set_viewport_size({"width": 1200, "height": 700})
    stage.send(record(40), Selection(0, "scaled", 30, 0))
    before = stage.part("numbers-formula").bounding_box()
    stage.page.evaluate("scrollTo(0, 200)")
    after = stage.part("numbers-formula").bounding_box()
    assert before is not None
    assert after is not None
    assert before["y"] - after["y"] < 160
    assert after["y"] >= 0


def test_the_readout_is_the_line_that_python_writes(stage: Stage) -> None:
    made = (record(6), record(6, mask_value=-1e9), record(6, scale=-0.3), staged(record(6)))
    for attention in made:
        stage.send(attention)
        for query, key in ((3, 1), (1, 4)):
            stage.send(attention, Selection(1, "weights", query, key), revision=10 * query + key)
            line = readout(attention, 1, query, key, queries=labels(6), keys=labels(6))
            expect(stage.part("readout")).to_have_text(line)
