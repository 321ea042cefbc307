"""Arcs are as wide as their weights; the six beats and the readout show the numbers of the chosen row."""

from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from model import load_model

TEXT = "The cat saw the dog and the cat ran"
QUERY, HEAD, PLACE = 7, 2, "decoder.1.self"
WIDEST = 12  # pixels of an arc of weight 1


@pytest.fixture
def explorer(open_page: Callable[..., Page]) -> Locator:
    page = open_page("/attention", text=TEXT, place=PLACE, head=HEAD, query=QUERY, key=1)
    found = page.get_by_test_id("explorer")
    expect(found).to_have_attribute("data-ready", "true")
    return found


@pytest.fixture(scope="module")
def attention():
    return load_model("house-gpt").trace(TEXT).find(PLACE)


def shown_arcs(explorer: Locator) -> list[dict[str, str]]:
    return explorer.locator(".arcs").evaluate(
        """(svg) => [...svg.children].filter((path) => path.style.display !== "none").map((path) => (
            {...path.dataset, width: path.getAttribute("stroke-width")}))"""
    )


def test_an_arc_is_as_wide_as_its_weight(explorer: Locator, attention) -> None:
    weights = attention.weights(HEAD)
    arcs = shown_arcs(explorer)
    read = {int(arc["token"]): arc for arc in arcs if arc["reads"] == "true"}
    assert set(read) == {key for key in range(len(weights)) if weights[QUERY, key] >= 0.01}
    for key, arc in read.items():
        assert float(arc["weight"]) == pytest.approx(weights[QUERY, key], abs=1e-5)
        assert float(arc["width"]) == pytest.approx(WIDEST * weights[QUERY, key], abs=1e-3)
    reading = {int(arc["token"]) for arc in arcs if arc["reads"] == "false"}
    readers = np.flatnonzero(weights[:, QUERY] >= 0.01)
    assert reading == set(readers.tolist()) - {QUERY}


def test_the_pointer_and_the_keys_move_the_arcs(explorer: Locator, attention) -> None:
    explorer.get_by_test_id("chip-query-4").hover()
    largest = max(
        shown_arcs(explorer), key=lambda arc: float(arc["weight"]) * (arc["reads"] == "true")
    )
    assert int(largest["token"]) == int(attention.weights(HEAD)[4].argmax())
    explorer.get_by_test_id("title").hover()
    explorer.get_by_test_id(f"chip-query-{QUERY}").focus()
    explorer.page.keyboard.press("ArrowLeft")
    expect(explorer).to_have_attribute("data-query", str(QUERY - 1))
    expect(explorer).to_have_attribute("data-ready", "true")
    row = attention.weights(HEAD)[QUERY - 1]
    assert sum(arc["reads"] == "true" for arc in shown_arcs(explorer)) == int((row >= 0.01).sum())


@pytest.mark.parametrize("words", [70])
def test_a_long_text_has_shades_alone(open_page: Callable[..., Page], words: int) -> None:
    page = open_page("/attention", text=" ".join(["cat"] * words))
    explorer = page.get_by_test_id("explorer")
    expect(explorer).to_have_attribute("data-ready", "true")
    expect(explorer.locator(".arcs")).to_have_count(0)


def beat_numbers(explorer: Locator) -> list[str]:
    return explorer.get_by_test_id("beat-rows").locator(".beatnumber").all_text_contents()


def number(text: str) -> float:
    return float(text.replace("−", "-").replace("∞", "inf"))


def test_each_beat_shows_the_numbers_of_the_row(explorer: Locator, attention) -> None:
    explorer.page.emulate_media(reduced_motion="reduce")
    explorer.get_by_test_id("open-play").click()
    masked = attention.masked(HEAD)[QUERY].astype(float)
    exponentials = np.exp(masked - masked.max())
    rows = [
        attention.scores(HEAD)[QUERY],
        attention.scaled(HEAD)[QUERY],
        masked,
        exponentials,
        exponentials / exponentials.sum(),
        attention.weights(HEAD)[QUERY],
    ]
    for beat, row in enumerate(rows):
        explorer.get_by_test_id("scrub").fill(str(beat + 1))
        expect(explorer.get_by_test_id("beat")).to_contain_text(f"{beat + 1} of 6")
        shown = [number(text) for text in beat_numbers(explorer)]
        assert shown == pytest.approx(row.tolist(), abs=6e-5)


def test_the_beats_play_to_their_end_and_can_be_stepped_and_closed(explorer: Locator) -> None:
    page = explorer.page
    page.emulate_media(reduced_motion="no-preference")
    explorer.get_by_test_id("open-play").click()
    expect(explorer.get_by_test_id("play")).to_be_focused()
    expect(explorer.get_by_test_id("play")).to_have_text("Pause")
    explorer.get_by_test_id("scrub").fill("4.9")
    expect(explorer.get_by_test_id("play")).to_have_text("Play")
    explorer.get_by_test_id("play").click()
    expect(explorer.get_by_test_id("beat")).to_contain_text("6 of 6")
    expect(explorer.get_by_test_id("play")).to_have_text("Play")
    page.keyboard.press("ArrowLeft")
    expect(explorer.get_by_test_id("beat")).to_contain_text("5 of 6")
    page.keyboard.press("ArrowRight")
    expect(explorer.get_by_test_id("beat")).to_contain_text("6 of 6")
    explorer.get_by_test_id("play-close").click()
    expect(explorer.get_by_test_id("player")).to_be_hidden()
    expect(explorer.get_by_test_id("open-play")).to_be_focused()


def test_with_reduced_motion_a_beat_is_a_step(explorer: Locator) -> None:
    explorer.page.emulate_media(reduced_motion="reduce")
    explorer.get_by_test_id("open-play").click()
    expect(explorer.get_by_test_id("scrub")).to_have_value("0")
    explorer.page.keyboard.press(" ")
    expect(explorer.get_by_test_id("scrub")).to_have_value("1")


def test_the_readout_says_the_chosen_cell(explorer: Locator, attention) -> None:
    score, scaled, weight = (
        matrix[QUERY, 1]
        for matrix in (attention.scores(HEAD), attention.scaled(HEAD), attention.weights(HEAD))
    )
    expect(explorer.get_by_test_id("readout")).to_contain_text(f"L1H{HEAD}")
    said = explorer.get_by_test_id("readout").inner_text().split(" · ")
    found = [number(part.split()[-1]) for part in said[-3:]]
    assert found == pytest.approx([score, scaled, weight], abs=6e-5)
