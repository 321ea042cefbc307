"""What the explorer draws: the model's numbers, in every theme, width and length of text."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.browser.explorer.stage import DARK, STAGES, Stage, expected, middle
from tests.viz.explorer.records import record
from viz.explorer import Selection

TWO_FRAMES_LATER = """() => new Promise((tell) => {
    const next = () => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(tell)));
    setTimeout(next);
})"""


def test_every_stage_is_a_plotly_heatmap_of_the_models_numbers(stage: Stage) -> None:
    attention = record(6, 9, kind="cross", mask=np.random.default_rng(0).random((6, 9)) > 0.3)
    stage.send(attention)
    for name in STAGES:
        stage.part(f"stage-{name}").click()
        stage.expect_cell(stage=name, renderer="plotly")
        drawn, numbers = stage.drawn(), expected(attention, name, 0)
        np.testing.assert_allclose(drawn, numbers, rtol=1e-5, atol=1e-5, err_msg=name)
        expect(stage.root.locator(".plotly .heatmaplayer image")).to_have_count(1)
        expect(stage.part(f"stage-{name}")).to_have_attribute("aria-checked", "true")


def test_one_token_is_enough(stage: Stage) -> None:
    stage.send(record(1, width=2), Selection())
    for name in STAGES:
        stage.part(f"stage-{name}").click()
        assert stage.drawn().shape[0] == 1


def test_equal_tokens_keep_their_own_rows_and_columns(stage: Stage) -> None:
    stage.send(record(5), queries=["the"] * 5, keys=["the"] * 5)
    assert stage.drawn().shape == (5, 5)
    for names in (".header .column .face", ".figure > .plotly .ytick text"):
        assert stage.root.locator(names).all_text_contents() == ["the"] * 5


def test_the_theme_is_followed_without_a_new_message(stage: Stage) -> None:
    stage.send(record(6))
    light = stage.root.locator(".figure > .plotly").evaluate(
        "plot => plot.data[0].colorscale[0][1]"
    )
    stage.theme(DARK)
    stage.send(record(6))
    dark = stage.root.locator(".figure > .plotly").evaluate("plot => plot.data[0].colorscale[0][1]")
    assert light.replace(" ", "") == "rgb(255,255,255)"
    assert dark.replace(" ", "") == "rgb(22,22,26)"


def test_a_place_that_is_hidden_at_first_is_drawn_once_it_shows(stage: Stage) -> None:
    stage.page.evaluate("document.querySelector('#place').style.display = 'none'")
    stage.post(record(6), Selection())
    assert stage.reports() == []  # by then, what could be drawn would be
    expect(stage.root).to_have_attribute("data-ready", "false")
    stage.page.evaluate("document.querySelector('#place').style.display = 'block'")
    assert stage.drawn().shape == (6, 6)


def test_without_plotly_the_picture_is_drawn_all_the_same(
    mounted: Callable[[Page], Stage], page_without: Callable[[str], Page]
) -> None:
    stage = mounted(page_without("plotly.min.js"))
    stage.send(record(6))
    stage.expect_cell(renderer="canvas")
    expect(stage.part("notice")).to_contain_text("Plotly could not be loaded")
    stage.part("figure").click(position=middle(stage, 5, 2, 6, 6))
    stage.expect_cell(query=5, key=2)


def dark_pixels(stage: Stage, layer: str) -> int:
    """How many pixels of a canvas are painted."""
    return int(
        stage.root.locator(f"canvas.{layer}").evaluate(
            """canvas => { const { data } = canvas.getContext("2d")
                .getImageData(0, 0, canvas.width, canvas.height);
                let count = 0; for (let n = 3; n < data.length; n += 4) count += data[n] > 0;
                return count; }"""
        )
    )


def test_a_long_text_is_an_overview_and_a_click_opens_an_exact_window(
    stage: Stage, subtests: pytest.Subtests
) -> None:
    for size, words in [(65, "Every position"), (600, "One cell = 3 × 3")]:
        with subtests.test(size=size):
            attention = record(size, heads=1)
            stage.send(attention, Selection(0, "weights", 0, 0))
            stage.expect_cell(renderer="canvas")
            expect(stage.part("window")).to_contain_text(words)
            assert dark_pixels(stage, "own") > 50_000
            stage.part("figure").click(position=middle(stage, size - 5, size // 2, size, size))
            expect(stage.part("window")).to_contain_text(f"Rows {size - 64}–{size - 1}")
            query, key = (int(stage.root.get_attribute(f"data-{n}") or 0) for n in ("query", "key"))
            assert (query, key) == pytest.approx((size - 5, size // 2), abs=1)
            stage.part("figure").focus()
            stage.page.keyboard.press("ArrowDown")
            stage.expect_cell(query=query + 1)
            weight = attention.weights(0)[query + 1, key]
            expect(stage.part("announcement")).to_contain_text(f"{weight:.4f}"[:5])
            stage.part("whole").click()
            expect(stage.part("window")).to_contain_text(words)


def test_nothing_is_wider_than_a_phone(
    mounted: Callable[[Page], Stage], narrow: Page, subtests: pytest.Subtests
) -> None:
    for size, compared in product([6, 64, 100], [False, True]):
        with subtests.test(size=size, compared=compared):
            stage = mounted(narrow)
            attention = record(size, heads=12)
            stage.send(attention, baseline=attention if compared else None)
            for name in STAGES:
                stage.part(f"stage-{name}").click()
                stage.ready()
                assert stage.page.evaluate("document.documentElement.scrollWidth") <= 358, name
                assert (
                    float(stage.root.locator(".figure").evaluate("figure => figure.offsetWidth"))
                    <= 358
                )


def test_what_is_left_without_room_draws_nothing(stage: Stage) -> None:
    """A page that is left, or a tab that is closed, between the picture and what is drawn after it."""
    complaints: list[str] = []
    stage.page.on("console", lambda message: complaints.append(message.text))
    stage.send(record(6))
    # The browser tells of the new size after this frame's tasks, and so after the picture is drawn.
    stage.part("stage-scores").evaluate(
        """(part) => {
            document.querySelector("#place").style.display = "none";
            requestAnimationFrame(() => part.click());
        }"""
    )
    stage.page.evaluate(TWO_FRAMES_LATER)
    assert complaints == []
