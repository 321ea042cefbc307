"""The beats in a browser: they move, are as large as what they show, and can be stepped by keys."""

import numpy as np
from playwright.sync_api import expect

from tests.browser.explorer.stage import Stage
from tests.viz.explorer.records import dropping, record
from viz.explorer import Selection


def played(stage: Stage) -> None:
    stage.send(dropping(record(6)), Selection(1, "weights", 5, 0))
    stage.part("open-play").click()


def test_values_are_as_thick_as_their_weights(stage: Stage) -> None:
    played(stage)
    stage.part("scrub").fill("6")
    applied = dropping(record(6)).dropped(1)[5]
    track = stage.part("beat-rows").locator(".track").first.bounding_box()
    held = stage.part("beat-rows").locator(".held").all()
    assert track is not None
    heights = [box["height"] for one in held if (box := one.bounding_box())]
    thickness = applied / max(applied.max(), 1)
    np.testing.assert_allclose(heights, thickness * track["height"], atol=0.5)


def test_the_beats_play_to_their_end_and_can_be_stepped_and_closed(stage: Stage) -> None:
    stage.page.emulate_media(reduced_motion="no-preference")
    played(stage)
    expect(stage.part("play")).to_be_focused()
    expect(stage.part("play")).to_have_text("Pause")
    stage.part("scrub").fill("5.9")
    expect(stage.part("play")).to_have_text("Play")
    stage.part("play").click()
    expect(stage.part("scrub")).to_have_value("6")
    expect(stage.part("play")).to_have_text("Play")
    for key, number in (("ArrowLeft", 5), ("ArrowRight", 6)):
        stage.page.keyboard.press(key)
        expect(stage.part("beat")).to_contain_text(f"{number} of 6")
    stage.part("play-close").click()
    expect(stage.part("player")).to_be_hidden()
    expect(stage.part("open-play")).to_be_focused()
    stage.page.emulate_media(reduced_motion="reduce")
    stage.part("open-play").click()
    expect(stage.part("scrub")).to_have_value("0")
    stage.page.keyboard.press(" ")  # a beat is a step where nothing may move
    expect(stage.part("scrub")).to_have_value("1")


def test_halfway_through_a_beat_the_row_is_halfway(stage: Stage) -> None:
    played(stage)
    stage.part("scrub").fill("0.5")
    rows = [one.bounding_box() for one in stage.part("beat-rows").locator(".beatrow").all()]
    asking = stage.part("beat-rows").locator(".asking").bounding_box()
    assert asking is not None
    assert rows[3] is not None
    assert rows[3]["y"] <= asking["y"] <= rows[3]["y"] + rows[3]["height"]
