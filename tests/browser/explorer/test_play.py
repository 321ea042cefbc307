"""The six beats show the row's own numbers, also where the mask or dropout makes it an odd one."""

from dataclasses import replace

import numpy as np
import pytest
from playwright.sync_api import expect

from model.trace.records import Attention
from tests.browser.explorer.stage import Stage
from tests.viz.explorer.records import record
from tests.viz.explorer.records_of_today import SINKS, later
from viz.explorer import Selection

BEATS = 6


def dropping(attention: Attention) -> Attention:
    """The same layer in a pass that dropped half of its weights and doubled the others."""
    heads = range(attention.heads)
    weights = np.stack([attention.weights(head) for head in heads])
    kept = np.random.default_rng(0).random(weights.shape) > 0.5
    steps = {
        "scores": np.stack([attention.scores(head) for head in heads]),
        "masked": np.stack([attention.masked(head) for head in heads]),
        "weights": weights,
        "dropped": (weights * np.float32(2) * kept).astype(np.float32),
    }
    dropped = replace(attention, steps=steps)
    return replace(dropped, output=np.stack([dropped.context(head) for head in heads]))


def beat(stage: Stage, number: int) -> list[float]:
    """The numbers that stand beside the keys at the end of a beat."""
    stage.part("scrub").fill(str(number))
    expect(stage.part("beat")).to_contain_text(f"{number} of {BEATS}")
    texts = stage.part("beat-rows").locator(".beatnumber").all_text_contents()
    return [float(text.replace("−", "-").replace("∞", "inf")) for text in texts]


def played(stage: Stage, attention: Attention, query: int) -> None:
    stage.send(attention, Selection(1, "weights", query, 0))
    stage.part("open-play").click()


def test_the_last_beat_mixes_the_values_with_what_dropout_left(stage: Stage) -> None:
    attention = dropping(record(6))
    played(stage, attention, 5)
    weights, applied = attention.weights(1)[5], attention.dropped(1)[5]
    assert np.abs(weights - applied).max() > 0.1
    assert beat(stage, 5) == pytest.approx(weights.tolist(), abs=6e-5)
    assert beat(stage, 6) == pytest.approx(applied.tolist(), abs=6e-5)
    expect(stage.part("beat-says")).to_contain_text("Dropout has set some weights to 0")
    track = stage.part("beat-rows").locator(".track").first.bounding_box()
    held = stage.part("beat-rows").locator(".held").all()
    assert track is not None
    heights = [box["height"] for one in held if (box := one.bounding_box())]
    thickness = applied / max(applied.max(), 1)
    np.testing.assert_allclose(heights, thickness * track["height"], atol=0.5)


def test_a_row_whose_every_key_is_masked_is_never_said_to_sum_to_one(stage: Stage) -> None:
    mask = np.tri(6, dtype=bool)
    mask[3] = False
    played(stage, record(6, mask=mask), 3)
    for number in (5, 6):
        assert beat(stage, number) == [0.0] * 6
        expect(stage.part("beat-says")).to_contain_text("Every key of this row is masked")
        expect(stage.part("beat-says")).not_to_contain_text("sum to 1")


def test_a_mask_value_is_said_as_it_is(stage: Stage) -> None:
    played(stage, record(6, mask_value=-1.0), 2)
    assert beat(stage, 3)[3:] == [-1.0] * 3
    expect(stage.part("beat-says")).to_contain_text("becomes −1")
    stage.send(record(6, mask_value=-1.0), Selection(1, "weights", 5, 0), revision=1)
    expect(stage.part("beat-says")).to_contain_text("No key is masked in this row")


def test_each_beat_shows_the_numbers_of_the_row(stage: Stage) -> None:
    attention = record(7)
    played(stage, attention, 4)
    masked = attention.masked(1)[4].astype(float)
    exponentials = np.exp(masked - masked.max())
    rows = [
        attention.scores(1)[4],
        attention.scaled(1)[4],
        masked,
        exponentials,
        attention.weights(1)[4],
        attention.weights(1)[4],
    ]
    for number, row in enumerate(rows, 1):
        assert beat(stage, number) == pytest.approx(row.tolist(), abs=6e-5)
    expect(stage.part("beat-says")).to_contain_text("times its weight, goes into the output")


def test_of_a_long_row_the_keys_with_the_largest_weights_are_shown(stage: Stage) -> None:
    attention = record(40, kind="self")
    played(stage, attention, 39)
    weights = attention.weights(1)[39]
    shown = sorted(np.argsort(-weights, kind="stable")[:24])
    assert beat(stage, 5) == pytest.approx(weights[shown].tolist(), abs=6e-5)
    expect(stage.part("beat-says")).to_contain_text("24 keys with the largest weights, of 40")


def test_the_beats_play_to_their_end_and_can_be_stepped_and_closed(stage: Stage) -> None:
    stage.page.emulate_media(reduced_motion="no-preference")
    played(stage, record(6), 5)
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
    attention = record(6)
    played(stage, attention, 5)
    stage.part("scrub").fill("0.5")
    numbers = stage.part("beat-rows").locator(".beatnumber")
    assert [one.evaluate("one => one.style.opacity") for one in numbers.all()] == [*"111000"]
    rows = [one.bounding_box() for one in stage.part("beat-rows").locator(".beatrow").all()]
    asking = stage.part("beat-rows").locator(".asking").bounding_box()
    assert asking is not None
    assert rows[3] is not None
    assert rows[3]["y"] <= asking["y"] <= rows[3]["y"] + rows[3]["height"]


def test_after_the_scaling_the_bars_are_drawn_longer_and_it_says_how_much(stage: Stage) -> None:
    attention = record(6)
    played(stage, attention, 5)
    scores, scaled = attention.scores(1)[5], attention.scaled(1)[5]
    times = int(np.abs(scores).max() // np.abs(scaled).max())
    assert times > 1
    for number, row, longer in ((1, scores, 1), (2, scaled, 1), (3, scaled, times)):
        beat(stage, number)
        expect(stage.part("beat-says")).to_contain_text(SAYS[number].format(times))
        expected = row / np.abs(scores).max() * longer
        assert bars(stage) == pytest.approx(expected.tolist(), abs=1e-4)


SAYS = {1: "dot product", 2: "multiplied by", 3: "the bars are drawn {} times as long"}


def bars(stage: Stage) -> list[float]:
    """How long the bars are, from -1 to 1."""
    drawn = stage.part("beat-rows").locator(".bar").all()
    lengths = [bar.evaluate("bar => bar.style.transform") for bar in drawn]
    return [float(length.removeprefix("scaleX(").removesuffix(")")) for length in lengths]


def test_a_sink_has_a_row_of_its_own_from_the_softmax_on(stage: Stage) -> None:
    attention = later(sinks=SINKS)
    played(stage, attention, 5)
    expect(stage.part("beat-rows").locator(".beatrow")).to_have_count(7)
    expect(stage.part("beat-rows").locator(".beatrow").last).to_contain_text("sink")
    numbers = stage.part("beat-rows").locator(".beatnumber")
    for number in (1, 2, 6):
        stage.part("scrub").fill(str(number))
        expect(numbers.last).to_have_text("–")
        assert bars(stage)[-1] == 0
    weights = [*attention.weights(1)[5], attention.sink_weights(1)[5]]
    assert beat(stage, 3)[-1] == pytest.approx(SINKS[1], abs=6e-5)
    assert beat(stage, 5) == pytest.approx(weights, abs=6e-5)
    assert sum(weights) == pytest.approx(1)
