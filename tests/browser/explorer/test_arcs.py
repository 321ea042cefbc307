"""The sentence below the picture: its arcs are as wide as the weights, whatever counts as one token."""

import re
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Page, expect

from model import load_model
from model.trace.records import Attention
from tests.browser.explorer.stage import Stage, middle
from tests.viz.explorer.records import record
from viz.explorer import Selection

WIDEST = 12  # pixels of an arc of weight 1
FAINT = 0.01  # smaller weights have no arc
PIECES = ["The", " un", "account", "able", " cat", " saw", " the", " book", "keeper", "."]
WORDS = [[0], [1, 2, 3], [4], [5], [6], [7, 8], [9]]
SHOWN = """(svg) => [...svg.children].filter((path) => path.style.display !== "none").map((path) => (
    { token: +path.dataset.token, reads: path.dataset.reads === "true", weight: +path.dataset.weight,
      width: +path.getAttribute("stroke-width"), stroke: path.getAttribute("stroke"),
      lit: path.classList.contains("lit") }))"""
Arc = dict[str, float]


def arcs(stage: Stage) -> list[Arc]:
    stage.ready()
    shown: list[Arc] = stage.root.locator(".arcs").evaluate(SHOWN)
    return shown


def expect_arcs(stage: Stage, weights: NDArray[np.floating], token: int) -> None:
    """Above, what a token attends to; below, the others that attend to it; each as wide as its weight."""
    shown = arcs(stage)
    for reads, line in ((True, weights[token]), (False, weights[:, token])):
        found = {int(arc["token"]): arc for arc in shown if arc["reads"] == reads}
        expected = set(np.flatnonzero(line >= FAINT).tolist()) - (set() if reads else {token})
        assert set(found) == expected
        for other, arc in found.items():
            assert arc["weight"] == pytest.approx(line[other], abs=1e-5)
            assert arc["width"] == pytest.approx(WIDEST * line[other], abs=1e-3)


@pytest.mark.parametrize("count", [13, 60])
@pytest.mark.parametrize("width", ["wide", "narrow"])
def test_arcs_are_as_wide_as_the_weights_and_stay_within_the_picture(
    mounted: Callable[[Page], Stage], request: pytest.FixtureRequest, count: int, width: str
) -> None:
    stage, attention = mounted(request.getfixturevalue(width)), record(count, kind="self")
    stage.send(attention, Selection(1, "weights", count - 1, 0))
    expect_arcs(stage, attention.weights(1), count - 1)
    beyond = stage.root.locator(".arcs").evaluate(
        """(svg) => { const room = svg.parentElement.getBoundingClientRect();
            return [...svg.children].filter((path) => path.style.display !== "none").map((path) =>
                path.getBoundingClientRect()).filter((box) => box.left < room.left - 1 ||
                    box.right > room.right + 1 || box.top < room.top - 1 || box.bottom > room.bottom + 1)
                .length }"""
    )
    assert beyond == 0


@pytest.mark.parametrize("count", [61, 400])
def test_a_long_text_has_shades_alone(stage: Stage, count: int) -> None:
    attention = record(count, heads=1)
    stage.send(attention, Selection(0, "weights", count - 1, 0))
    expect(stage.root.locator(".arcs")).to_have_count(0)
    largest = int(attention.weights(0)[count - 1].argmax())
    weight = attention.weights(0)[count - 1, largest]
    chip = stage.part(f"chip-query-{largest}")
    expect(chip).to_have_attribute("title", re.compile(rf"^query {largest} .*: {weight:.4f}$"))


def test_pointer_tap_and_keys_move_the_arcs(stage: Stage) -> None:
    attention = record(6, kind="self")
    weights = attention.weights(0)
    stage.send(attention, Selection(0, "weights", 3, 1))
    stage.part("chip-query-4").hover()
    expect_arcs(stage, weights, 4)
    stage.part("readout").hover()
    expect_arcs(stage, weights, 3)
    stage.part("chip-query-5").click()
    stage.page.keyboard.press("ArrowLeft")
    stage.expect_cell(query=4)
    stage.part("readout").hover()
    expect_arcs(stage, weights, 4)
    stage.part("side-read-by").click()
    stage.part("chip-key-2").click()
    stage.part("readout").hover()
    expect_arcs(stage, weights, 2)


def test_a_cell_lights_its_arc_and_an_arc_its_cell(stage: Stage) -> None:
    attention = record(6, kind="self")
    stage.send(attention, Selection(0, "weights", 3, 1))
    key = int(attention.weights(0)[3].argmax())
    stage.part("figure").hover(position=middle(stage, 3, key, 6, 6))
    lit = [arc for arc in arcs(stage) if arc["lit"]]
    assert [(arc["token"], arc["reads"]) for arc in lit] == [(key, True)]
    stage.part("figure").hover(position=middle(stage, 5, 2, 6, 6))
    expect_arcs(stage, attention.weights(0), 5)  # those of the row under the pointer
    stage.part("readout").hover()
    assert not [arc for arc in arcs(stage) if arc["lit"]]
    stage.root.locator(f".arcs path[data-token='{key}'][data-reads=true]").dispatch_event(
        "pointerover", {"bubbles": True}
    )
    expect(stage.root.locator(".rings [data-ring]")).to_have_attribute("data-ring", f"3,{key}")


def test_the_first_token_is_grey_and_can_be_hidden_which_is_said(stage: Stage) -> None:
    attention = record(6, kind="self")
    stage.send(attention, Selection(0, "weights", 3, 1))
    above = {arc["token"]: arc["stroke"] for arc in arcs(stage) if arc["reads"]}
    assert above[0] != above[1] == above[2]
    stage.part("hide-first").click()
    expect(stage.part("sentence")).to_contain_text("no longer sums to 1")
    assert {arc["token"] for arc in arcs(stage) if arc["reads"]} == set(above) - {0}
    expect(stage.part("chip-query-0")).to_have_attribute("title", "query 0 “The”: hidden here")
    stage.part("hide-first").click()
    expect(stage.part("sentence")).not_to_contain_text("no longer sums to 1")
    assert {arc["token"] for arc in arcs(stage) if arc["reads"]} == set(above)


def test_several_queries_show_their_mean(stage: Stage) -> None:
    attention = record(6, kind="self")
    stage.send(attention, Selection(0, "weights", 3, 1))
    stage.part("several").click()
    for query in (1, 5):
        stage.part(f"chip-query-{query}").click()
    mean = attention.weights(0)[[1, 3, 5]].mean(0)
    expect(stage.part("sentence")).to_contain_text("3 tokens, their mean")
    for key in range(6):
        expect(stage.part(f"chip-query-{key}")).to_contain_text(f"{mean[key]:.2f}")
    shown = arcs(stage)
    for key in range(6):
        parts = [arc["weight"] for arc in shown if arc["reads"] and arc["token"] == key]
        assert sum(parts) == pytest.approx(mean[key], abs=3 * FAINT)
    stage.part("chip-query-5").click()
    mean = attention.weights(0)[[1, 3]].mean(0)
    expect(stage.part("chip-query-2")).to_contain_text(f"{mean[2]:.2f}")
    stage.part("several").click()
    stage.expect_cell(query=1)
    expect_arcs(stage, attention.weights(0), 1)


def by_words(weights: NDArray[np.floating]) -> NDArray[np.floating]:
    """(word, word): summed over a word's keys, then the mean over a word's queries."""
    summed = np.stack([weights[:, word].sum(1) for word in WORDS], 1)
    return np.stack([summed[word].mean(0) for word in WORDS])


def test_whole_words_add_their_tokens(stage: Stage) -> None:
    attention = record(len(PIECES), kind="self")
    stage.send(attention, Selection(0, "weights", 8, 1), queries=PIECES, keys=PIECES)
    stage.part("unit-word").click()
    expect(stage.part("chips-query").get_by_role("radio")).to_have_count(len(WORDS))
    expect(stage.part("chip-query-1")).to_contain_text("·unaccountable")
    words = by_words(attention.weights(0))
    assert words.sum(1) == pytest.approx(1)
    for number, word in enumerate(WORDS):
        expect(stage.part(f"chip-query-{word[0]}")).to_contain_text(f"{words[5, number]:.2f}")
    above = {int(arc["token"]): arc["weight"] for arc in arcs(stage) if arc["reads"]}
    assert above == pytest.approx({word[0]: words[5, n] for n, word in enumerate(WORDS)}, abs=1e-5)
    stage.part("chip-query-1").click()
    stage.expect_cell(query=1)
    expect(stage.part("chip-query-1")).to_contain_text(f"{words[1, 1]:.2f}")


def test_a_text_of_whole_words_has_no_switch_for_them(stage: Stage) -> None:
    stage.send(record(6))
    expect(stage.part("hide-first")).to_be_visible()
    expect(stage.part("unit-word")).to_have_count(0)


def test_the_models_own_weights_have_their_arcs(stage: Stage) -> None:
    trace = load_model("house-gpt").trace("Tom Hill saw a red ball. Anna gave the ball to Tom")
    attention: Attention = trace.find("decoder.1.self")
    tokens = [token.text for token in trace.tokens]
    stage.send(attention, Selection(7, "weights", 12, 1), queries=tokens, keys=tokens)
    expect_arcs(stage, attention.weights(7), 12)
