"""A ring lies around what words name; the picture fits the window."""

import pytest

from tests.browser.explorer.stage import Stage
from tests.viz.explorer.records import record
from viz.explorer import Selection
from viz.explorer.message import HeadClaim, LinkedWords, Ring


def test_a_ring_lies_around_its_row(stage: Stage) -> None:
    words = LinkedWords("the last token", (Ring(query=5),))
    claim = HeadClaim("decoder.2.self", 1, "What to look for.", (words,))
    stage.send(record(6), Selection(1, "query", 3, 1), claims=[claim])
    stage.part("look-for").get_by_role("button", name="the last token").click()
    stage.ready()
    bottom = "one => { const { y, height } = one.getBBox(); return y + height; }"
    box, ring = (
        stage.root.locator(name).first.evaluate(bottom)
        for name in (".marks rect", ".rings [data-ring]")
    )
    assert ring == pytest.approx(box, abs=4)


@pytest.mark.parametrize("count", [6, 13, 40])
@pytest.mark.parametrize("size", [(852, 760), (1100, 900)])
def test_map_stages_row_and_readout_are_one_screen(
    stage: Stage, count: int, size: tuple[int, int]
) -> None:
    width, height = size
    stage.page.set_viewport_size({"width": width + 100, "height": height})
    stage.send(record(count), Selection(0, "weights", count - 1, 0))
    figure = stage.part("figure").bounding_box()
    assert figure is not None
    for part in ("headline", "stages", "open-play", "more", "figure", "top-keys", "readout", "how"):
        box = stage.part(part).bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= height, part
        assert box["x"] + box["width"] <= width + 100, part
        if part in ("top-keys", "readout"):
            assert box["x"] >= figure["x"] + figure["width"]
    top = stage.root.locator(".marks rect").first.bounding_box()
    row = stage.part("top-keys").bounding_box()
    assert top is not None
    assert row is not None
    assert row["y"] == pytest.approx(top["y"], abs=4)  # the row begins where the map does
