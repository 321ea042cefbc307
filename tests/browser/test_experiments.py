"""The experiments in a real browser: a card, a guess, the lecture view, and views with controls."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.controls import MARKS, click_mark
from viz.views.experiments.experiments import experiments

TEXT = "Tom Hill saw a red ball"
# Whether it is in sight, how wide, and how large its letters are on the screen.
LETTERS = """(element) => {
    const { width, height, top } = element.getBoundingClientRect();
    const larger = width / element.offsetWidth;
    const letters = larger * parseFloat(getComputedStyle(element).fontSize);
    return { width, seen: height > 0 && top < innerHeight, letters };
}"""


def test_a_card_opens_its_question_a_guess_its_verdict_and_the_way_back_all_cards(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/experiments", text=TEXT)
    expect(page.locator(".experiments article")).to_have_count(len(experiments()))
    one = experiments()[0]
    page.get_by_role("link", name=one.question).click()
    expect(page.get_by_role("heading", name=one.question)).to_be_visible()
    expect(page).to_have_url(re.compile("show=No\\+mask"))
    expect(page.get_by_label("Your sentence")).to_have_value(TEXT)
    expect(page.locator(".moving tbody tr")).to_have_count(5)
    expect(page.locator(".verdict")).to_have_count(0)
    page.get_by_role("radio", name=one.choices[2]).click()
    expect(page.locator(".verdict .moved")).to_be_visible()
    expect(page.locator(".moving i.was")).to_have_count(5)
    page.get_by_role("link", name="All experiments").click()
    expect(page.locator(".experiments article")).to_have_count(len(experiments()))


def test_the_lecture_view_shows_the_question_the_choices_and_the_picture(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/experiments", show="No mask")
    page.set_viewport_size({"width": 1280, "height": 720})
    page.get_by_role("radio").first.click()
    expect(page.locator(".verdict")).to_be_visible()
    page.keyboard.press("Escape")
    page.locator("h2.asked").click()
    page.keyboard.press("p")
    expect(page.locator("html[data-lecture]")).to_be_attached()
    for place in ("h2.asked", ".verdict", ".moving"):
        expect(page.locator(place)).to_be_visible()
    expect(page.get_by_role("radio").first).to_be_visible()
    asked, picture = (page.locator(one).evaluate(LETTERS) for one in ("h2.asked", ".moving"))
    assert asked["letters"] >= 22
    assert picture["width"] >= 600
    assert asked["seen"]
    assert picture["seen"]


@pytest.mark.walk
def test_a_clicked_cell_puts_a_part_of_the_other_run_in_and_takes_it_out(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/experiments", text=TEXT, show="Patch")
    other = page.get_by_label("Sentence B")
    other.fill("Hill Tom saw a red ball")
    other.press("Enter")
    expect(page).to_have_url(re.compile("second_text=Hill"))
    patches = page.locator("[class*='st-key-experiment-patch-']")
    click_mark(patches.locator(MARKS).nth(9), re.compile("L1H1"))
    part = page.get_by_role("button", name=re.compile("^L1H1 from “Hill Tom saw"))
    expect(part).to_be_visible()
    expect(page).to_have_url(re.compile(r"patch=house-gpt"))
    part.click()
    expect(part).to_have_count(0)


@pytest.mark.walk
def test_a_claim_is_drawn_with_its_verdict_and_a_network_with_its_path(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/experiments", show="Claims")
    expect(page.get_by_text("Contradicted", exact=True)).to_be_visible()  # of the norm
    expect(page.locator(".js-plotly-plot .legend", has_text="8 layers, without")).to_be_visible()
    page = open_page("/experiments", show="Claims", claim="Dropout")
    expect(page.locator(".js-plotly-plot", has_text="dropout 0.2, its own rows")).to_be_visible()
    expect(page.get_by_text("Supported", exact=True)).to_be_visible()
    page = open_page("/experiments", show="GRU")
    expect(page.locator(".js-plotly-plot", has_text="GRU: 19 steps")).to_be_visible()
    page.get_by_role("slider").first.press("ArrowRight")  # where the path begins
    expect(page.locator(".js-plotly-plot", has_text="GRU: 18 steps")).to_be_visible()
