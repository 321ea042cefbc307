"""The training page in a real browser: the stripe forms under the slider, and a run trains here."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from model.training import trainer
from model.training.checkpoints import Archive, shipped_training_run
from model.training.induction import short_recipe
from model.training.training_record import TrainingRecord
from tests.browser.controls import show
from tests.legible import STILL
from viz.views.training.choice import LIST

SECONDS = 1000
A_RUN = 240 * SECONDS  # of 200 steps; some seconds on a free core
STRIPE = "weight on what followed the same token earlier"
# Presses Play, and presses again as soon as a step is shown: what the button says then. A look from outside
# might come too late for a step.
PLAY_UNTIL = """(player, step) => new Promise((done) => {
    const play = player.querySelector("[data-testid=play]");
    new MutationObserver((_, watch) => {
        if (player.dataset.step !== step) return;
        watch.disconnect();
        const said = play.textContent.trim();
        play.click();
        done(said);
    }).observe(player, { attributes: true });
    play.click();
})"""


def stripe(page: Page) -> float:
    """The mean weight on the framed cells, as the page says it."""
    words = page.get_by_test_id("measures").inner_text().split("\n")
    return float(words[words.index(f"Mean {STRIPE}") + 1])


def player(page: Page) -> Locator:
    return page.get_by_test_id("player")


def colour_of(page: Page, query: int, key: int) -> list[int]:
    """Red, green and blue in the middle of a cell of the map, of 20 tokens."""
    colour: list[int] = page.get_by_test_id("map").evaluate(
        """(canvas, [row, column]) => {
          const ratio = canvas.width / canvas.clientWidth;
          const cell = (canvas.clientHeight - 4 - 36) / 20;
          const left = canvas.clientWidth - 46 - 20 * cell;
          const [x, y] = [left + (column + 0.3) * cell, 36 + (row + 0.3) * cell];
          return [...canvas.getContext("2d").getImageData(x * ratio, y * ratio, 1, 1).data.slice(0, 3)];
        }""",
        [query, key],
    )
    return colour


def test_the_slider_moves_from_no_pattern_to_a_clear_stripe_without_the_server(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/training")
    expect(player(page)).to_have_attribute("data-step", "1000")
    assert stripe(page) >= 0.8
    assert max(colour_of(page, 15, 6)) < 180  # the second "5" looks at "q": purple
    page.context.set_offline(True)  # from here on nothing can come from the server
    slider = page.get_by_test_id("slider")
    slider.press("Home")
    expect(player(page)).to_have_attribute("data-step", "0")
    assert stripe(page) < 0.1
    assert min(colour_of(page, 15, 6)) > 180  # nearly the page's own white
    steps, weights = [], []
    for _ in range(6):
        slider.press("ArrowRight")
        steps.append(player(page).get_attribute("data-step"))
        weights.append(stripe(page))
    assert steps == ["100", "200", "300", "400", "600", "1000"]
    assert weights[-1] >= 0.8
    assert max(weights[:2]) < 0.1
    page.context.set_offline(False)


@pytest.mark.walk
def test_play_runs_to_the_end_and_curves_map_and_table_follow(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/training")
    expect(player(page)).to_have_attribute("data-ready", "true")
    play = page.get_by_test_id("play")
    assert player(page).evaluate(PLAY_UNTIL, "300") == "Pause"
    expect(play).to_have_text("▶ Play")
    expect(player(page)).to_have_attribute("data-step", "300")
    page.get_by_test_id("slider").press("Home")
    curves = page.get_by_test_id("curves")
    expect(curves).to_contain_text("training loss –")
    play.click()
    expect(player(page)).to_have_attribute("data-step", "1000")
    expect(play).to_have_text("▶ Play")
    expect(curves).to_contain_text("training loss 0.21")
    expect(page.get_by_test_id("movement")).to_contain_text("84 %")
    weights = Archive().traces(shipped_training_run("induction"), LIST).weights("decoder.1.self", 2)
    told = f"L1H2: x → k, step 1000, weight {weights[-1, 19, 10]:.4f}"
    expect(page.get_by_test_id("readout")).to_have_text(told)
    page.get_by_test_id("map").press("ArrowRight")
    expect(page.get_by_test_id("readout")).to_contain_text("x → 3, step 1000, weight 0.")
    page.get_by_text("The numbers as a table").click()
    expect(page.get_by_test_id("player-table").locator("tbody tr, tr")).to_have_count(21)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save all checkpoints (CSV)").click()
    lines = saved.value.path().read_text().splitlines()
    assert len(lines) == 1 + 7 * (20 * 21) // 2
    assert lines[1] == '0,0,"k",0,"k",1'
    saved_weights = [np.float32(line.rpartition(",")[2]) for line in lines[1:]]
    assert np.array_equal(saved_weights, weights[:, np.tri(20, dtype=bool)].ravel())
    box = curves.locator(".chart > svg").first.bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.43, box["y"] + 40)
    expect(player(page)).to_have_attribute("data-step", "400")


@pytest.mark.process
@pytest.mark.timeout(600)  # a third of a minute on a free core
def test_a_model_is_trained_here_to_the_end_and_another_is_stopped(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/training")
    page.get_by_role("button", name="Train one here").click()
    page.get_by_role("radio", name="200", exact=True).click()
    page.get_by_role("button", name="Train", exact=True).click()
    bar = page.get_by_test_id("stProgress")
    expect(bar).to_contain_text("Training: step", timeout=A_RUN)
    expect(player(page)).to_have_attribute("data-step", "50", timeout=A_RUN)
    expect(bar).to_contain_text("Done: step 200 of 200", timeout=A_RUN)
    expect(bar).to_contain_text("induction is 0.0")  # too short for the gates, and said so
    expect(player(page)).to_have_attribute("data-step", "200")
    page.get_by_test_id("slider").press("Home")
    expect(player(page)).to_have_attribute("data-step", "0")
    expect(page.get_by_test_id("curves")).to_contain_text("best induction head 0.0")
    page.get_by_role("radio", name="1000", exact=True).click()
    page.get_by_role("button", name="Train", exact=True).click()
    expect(bar).to_contain_text("of 1,000, loss", timeout=A_RUN)
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(bar).to_contain_text("Stopped at step", timeout=A_RUN)
    expect(page.get_by_role("button", name="Train", exact=True)).to_be_enabled()


@pytest.mark.walk
def test_a_record_of_ones_own_stands_beside_a_shipped_run_under_one_slider(
    open_page: Callable[..., Page], tmp_path: Path
) -> None:
    recipe = short_recipe(3, 200)
    run, path = trainer.begin(recipe), tmp_path / "mine.safetensors"
    record = TrainingRecord(path, probes=[LIST], tokenizer=recipe.task.tokenizer, every=100)
    record.step(run.module, 0)
    for step in (900, 1700):
        record.step(run.module, step)
    page = open_page("/training", show="Two runs")
    expect(player(page)).to_have_count(2)
    page.get_by_role("button", name="Yours").click()
    page.locator("input[type=file]").first.set_input_files(path)
    left, right = player(page).first, player(page).nth(1)
    expect(left).to_have_attribute("data-step", "1700")
    page.keyboard.press("Escape")
    page.get_by_test_id("slider").first.press("Home")
    expect(left).to_have_attribute("data-step", "0")
    expect(right).to_have_attribute("data-step", "0")
    page.get_by_test_id("slider").first.press("ArrowRight")
    expect(left).to_have_attribute("data-step", "900")
    expect(right).to_have_attribute("data-step", "1000")  # the nearest of its own
    page.get_by_test_id("slider").nth(1).press("End")
    expect(left).to_have_attribute("data-step", "1700")
    legend = page.locator(".js-plotly-plot .legend", has_text="loss, Stories (right)")
    expect(legend).to_be_visible()


@pytest.mark.walk
def test_the_idea_and_the_tiny_numbers_are_drawn(open_page: Callable[..., Page]) -> None:
    page = open_page("/training")
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.get_by_test_id("stExpandSidebarButton")).to_be_visible()
    page.evaluate(STILL)
    menu = page.get_by_test_id("stExpandSidebarButton").bounding_box()
    heading = page.locator(".stations").bounding_box()
    assert menu["y"] + menu["height"] <= heading["y"]  # it does not lie on what stands first
    # What scrolls below the menu's button does not show around it: the work bar covers it.
    bar = page.locator("[data-testid=stLayoutWrapper]:has(> .st-key-work-bar)")
    expect(bar).to_have_css("background-color", "rgb(255, 255, 255)")
    expect(bar).to_have_css("position", "sticky")
    place = bar.bounding_box()
    assert place["y"] <= menu["y"]
    assert place["y"] + place["height"] >= menu["y"] + menu["height"]
    page.set_viewport_size({"width": 1440, "height": 900})
    page.get_by_text("The idea, in words").click()
    expect(page.get_by_text("phase change", exact=True)).to_be_visible()
    expect(page.locator(".js-plotly-plot .ytitle", has_text="loss")).to_be_visible()
    show(page, "Tiny numbers")
    expect(page.locator("a[href$='example=most-probable-word']")).to_be_visible()
    expect(page.locator(".js-plotly-plot .heatmaplayer image").first).to_be_visible()
    show(page, "Live")


@pytest.mark.walk
def test_a_training_forms_by_itself_from_its_first_step(fresh_page: Callable[..., Page]) -> None:
    page = fresh_page(reduced_motion="no-preference")
    page.goto("/training")
    expect(player(page)).to_have_attribute("data-step", "100")
    expect(page.get_by_test_id("play")).to_have_text("Pause")
    expect(player(page)).to_have_attribute("data-step", "1000")
    expect(page.get_by_test_id("play")).to_have_text("▶ Play")
