"""The feed-forward page in a real browser: marks, controls and every view."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.controls import MARKS, click_mark, each_shows, show

TEXT = "the cat saw the dog"
SAID = {
    "On the curve": "of the values arrive below 0",
    "Contributions": re.compile("^attention adds$"),
    "Every token": "length of what each sub-layer adds",
}


@pytest.mark.walk
def test_a_mark_fills_the_formula_and_every_view_answers_its_controls(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/feed_forward", model="stories", text=TEXT)
    expect(page.get_by_text("the one that the activation changes most here")).to_be_visible()
    click_mark(page.locator(MARKS).nth(4), "choose token 4 ·dog")
    expect(page.get_by_text("Token 4 ·dog, its neuron with the largest activation")).to_be_visible()
    each_shows(page, SAID)


def test_the_curves_of_the_idea_show_slopes_too(open_page: Callable[..., Page]) -> None:
    page = open_page("/feed_forward", model="minilm", text=TEXT)
    page.get_by_text("The idea, in words").click()
    expect(page.locator(".js-plotly-plot .ytitle", has_text="value")).to_be_visible()
    show(page, "Slope")
    expect(page.locator(".js-plotly-plot .ytitle", has_text="slope")).to_be_visible()
