"""Next token and Writing in a real browser: change what is drawn from, write on, see what is kept."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.controls import BARS, choose, click_mark, more, plots, put_away, show
from tests.legible import STILL

TEXT = "Tom Hill saw a red ball. Anna gave the ball to Tom"


@pytest.mark.walk
def test_temperature_and_top_k_change_the_bars_and_the_words(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/prediction", model="stories", text=TEXT)
    expect(plots(page).filter(has_text="·Hill")).to_have_count(1)
    page.get_by_role("slider", name="Temperature").focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    expect(page.get_by_text("divides every logit by 1.5")).to_be_visible()
    page.get_by_role("button", name="Top-k, top-p").click()
    page.get_by_role("slider", name="Top-k").focus()
    for _ in range(11):  # from all down to 8
        page.keyboard.press("ArrowLeft")
    expect(page.get_by_text("keeps 8 of 756 tokens")).to_be_visible()
    expect(plots(page).filter(has_text="cut")).to_have_count(1)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Reset", exact=True).click()
    expect(plots(page).filter(has_text="cut")).to_have_count(0)


@pytest.mark.walk
def test_a_clicked_bar_puts_its_numbers_into_the_formula(open_page: Callable[..., Page]) -> None:
    page = open_page("/prediction", model="stories", text=TEXT)
    expect(plots(page).filter(has_text="→ ·Hill")).to_have_count(1)
    click_mark(page.locator(BARS).nth(1), re.compile("logit"))
    expect(plots(page).filter(has_text="→ ·Hill")).to_have_count(0)
    expect(plots(page).filter(has_text="→ ")).to_have_count(1)
    show(page, "Which tokens made it?")
    expect(page.get_by_text("the integrated gradients add up to")).to_be_visible()
    expect(plots(page).filter(has_text="left out")).to_have_count(1)


@pytest.mark.walk
def test_the_model_writes_on_step_by_step_with_the_keyboard_too(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/writing", model="stories", text=TEXT)
    new = page.locator("mark u")
    expect(new).to_have_count(1)  # what it wrote under way is gone
    expect(plots(page)).to_have_count(2)
    step = page.get_by_role("slider", name="Step")
    step.focus()
    page.keyboard.press("Home")
    expect(new).to_have_text([re.compile("Hill")])
    page.keyboard.press("ArrowRight")
    expect(new).to_have_text(".")
    page.keyboard.press("ArrowLeft")
    expect(new).to_have_text(re.compile("Hill"))
    page.evaluate(STILL)
    click_mark(page.locator(BARS).nth(1), re.compile(r"0\.\d"))  # the second column
    expect(new).to_have_text(".")
    show(page, "KV cache")
    expect(plots(page).filter(has_text="without the cache")).to_have_count(1)
    behind = more(page, "prediction-kept")
    expect(behind.get_by_text("They may be kept")).to_be_visible()
    put_away(page, behind)
    choose(page, "Keep", re.compile("^8$"))
    expect(plots(page).filter(has_text="every token kept")).to_have_count(1)


def test_an_encoder_offers_the_way_to_a_model_that_predicts(open_page: Callable[..., Page]) -> None:
    page = open_page("/prediction", model="minilm", text=TEXT)
    expect(page.get_by_text("predicts no next token")).to_be_visible()
    expect(plots(page).filter(has_text="·Hill")).to_have_count(1)
    page.get_by_role("button", name=re.compile("Use House GPT")).click()
    expect(plots(page).filter(has_text="·Hill")).to_have_count(1)
    expect(page.get_by_role("textbox", name="Your sentence")).to_have_value(TEXT)
