"""The pages Feed-forward and Stream in a real browser: marks, controls and every view."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.controls import MARKS, choose, click_mark, more, show

TEXT = "the cat saw the dog"


@pytest.mark.walk
def test_a_clicked_cell_fills_the_formula_with_its_token(open_page: Callable[..., Page]) -> None:
    page = open_page("/feed_forward", model="stories", text=TEXT)
    expect(page.get_by_text("bent most by the curve")).to_be_visible()
    click_mark(page.locator(MARKS).nth(4 * 24), re.compile("token 4 ·dog"))
    expect(page.get_by_text("In the row of ·dog")).to_be_visible()
    show(page, "On the curve")
    expect(page.get_by_text("of the values arrive below 0")).to_be_visible()


def test_the_stream_shows_what_each_state_would_predict_and_what_is_added(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/stream", model="stories", text=TEXT)
    table = page.get_by_role("region", name="What each state would predict")
    expect(table.get_by_role("rowheader", name="L1 feed-forward")).to_be_visible()
    expect(table.locator("td.first")).to_have_count(1)
    first = table.locator("td").first.get_attribute("title")
    choose(page, "Probability of", "the final token")
    expect(table.locator("td").first).not_to_have_attribute("title", first or "")
    behind = more(page, "prediction-lens-table")
    expect(behind.get_by_text("differ from the model's own output by at most")).to_be_visible()
    expect(behind.get_by_role("button", name="Save picture")).to_be_visible()
    page.keyboard.press("Escape")
    show(page, "Contributions")
    expect(page.get_by_text("attention adds", exact=True)).to_be_visible()
    choose(page, "Lengths for", "Every token")
    expect(page.locator(".js-plotly-plot .heatmaplayer image")).to_be_visible()


def test_in_the_lecture_view_the_last_column_is_seen_in_large_letters(
    open_page: Callable[..., Page],
) -> None:
    page = open_page(
        "/stream", model="house-gpt", text="Tom saw a red ball. Anna gave the ball to Tom"
    )
    page.get_by_test_id("lecture").click()
    cell = page.locator(".lens td.first")
    expect(cell).to_be_in_viewport(ratio=0.9)
    box, size = (
        cell.bounding_box(),
        cell.evaluate("one => parseFloat(getComputedStyle(one).fontSize)"),
    )
    larger = cell.evaluate("one => one.getBoundingClientRect().height / one.offsetHeight")
    assert box is not None
    assert size * larger >= 18
