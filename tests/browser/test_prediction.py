"""The prediction page in a real browser: change what is drawn from, look by layer, write on."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.controls import more, plots, put_away, show
from tests.legible import STILL

TEXT = "Tom Hill saw a red ball. Anna gave the ball to Tom"


@pytest.mark.walk
def test_temperature_and_top_k_change_the_bars_and_the_words(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/prediction", model="stories", text=TEXT)
    expect(plots(page).filter(has_text="·Hill")).to_have_count(1)
    expect(page.get_by_text("= 1.0000, over all 756 tokens")).to_be_visible()
    page.get_by_role("slider", name="Temperature").focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    expect(page.get_by_text("divides every logit by 1.5")).to_be_visible()
    page.get_by_role("button", name="More settings").click()
    field = page.get_by_role("spinbutton", name="Top-k: number of tokens to keep")
    field.fill("4")
    field.press("Enter")
    expect(page.get_by_text("keeps 4 of 756 tokens")).to_be_visible()
    expect(plots(page).filter(has_text="cut")).to_have_count(1)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Reset to the model's own distribution").click()
    expect(plots(page).filter(has_text="cut")).to_have_count(0)


def test_the_tokens_that_made_it_are_drawn(open_page: Callable[..., Page]) -> None:
    page = open_page("/prediction", model="stories", text=TEXT)
    show(page, "Which tokens made it?")
    expect(page.get_by_text("the integrated gradients add up to")).to_be_visible()
    expect(plots(page).filter(has_text="left out")).to_have_count(1)


@pytest.mark.walk
def test_the_model_writes_on_step_by_step_with_the_keyboard_too(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/prediction", model="stories", text=TEXT)
    show(page, "Token by token")
    new = page.locator("mark u")
    expect(new).to_have_text([re.compile("Hill")])  # what it wrote under way is gone too
    expect(plots(page)).to_have_count(2)
    following = page.get_by_role("button", name="Next", exact=True)
    page.evaluate(STILL)
    control, picture = following.bounding_box(), plots(page).first.bounding_box()
    assert control is not None
    assert picture is not None
    assert 0 < picture["y"] - control["y"] - control["height"] < 250  # both are seen together
    following.click()
    expect(new).to_have_text(".")
    page.get_by_role("button", name="Back", exact=True).click()
    expect(new).to_have_text(re.compile("Hill"))
    page.get_by_role("slider", name="Step").focus()
    page.keyboard.press("ArrowRight")
    expect(new).to_have_text(".")
    expect(page.get_by_test_id("explorer")).to_contain_text("Weights of L1H3")
    page.get_by_text("the best beams").click()
    expect(plots(page).filter(has_text="dropped")).to_have_count(1)
    expect(page.get_by_text("The text of beam search is 3.23 times as probable")).to_be_visible()
    show(page, "KV cache")
    expect(plots(page).filter(has_text="computed again")).to_have_count(1)
    expect(page.get_by_text("They may be kept")).to_be_visible()
    expect(plots(page).filter(has_text="milliseconds of the step")).to_have_count(1)
    behind = more(page, "prediction-step-times")
    expect(behind.get_by_text("both ways give the same logits")).to_be_visible()
    put_away(page, behind)
    show(page, "A shorter cache")
    expect(plots(page).filter(has_text="the last 8 and the first")).to_have_count(1)
    expect(page.locator("mark u")).to_have_count(3)


@pytest.mark.walk
def test_an_encoder_offers_the_way_to_a_model_that_predicts(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/prediction", model="minilm", text=TEXT)
    expect(page.get_by_text("predicts no next token")).to_be_visible()
    page.get_by_role("button", name=re.compile("Read it with House GPT")).click()
    expect(plots(page).filter(has_text="·Hill")).to_have_count(1)
    expect(page.get_by_role("textbox", name="Your sentence")).to_have_value(TEXT)
