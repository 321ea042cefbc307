"""All heads in a real browser: a click on a tile, a cell, a word; the way to the explorer."""

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import wait_until_settled
from tests.browser.controls import BARS, click_mark, each_shows, show, wait_until_true
from tests.legible import STILL, assert_opens_on_its_picture

TEXT = "cat dog mat hat cup cat dog mat hat cup cat"
MIDDLE = """number => {
    const charts = [...document.querySelectorAll('.js-plotly-plot')];
    const chart = charts.find(one => (one._fullData || []).some(trace => trace.name === 'heads'));
    if (!chart) return null;
    const marks = chart._fullData.find(trace => trace.name === 'heads');
    const {xaxis, yaxis} = chart._fullLayout, box = chart.getBoundingClientRect();
    return [box.left + xaxis._offset + xaxis.c2p(marks.x[number]),
            box.top + yaxis._offset + yaxis.c2p(marks.y[number])];
}"""
# The views in their order, with what each says.
VIEWS = {
    "Pattern": "Highest here:",
    "Word to word": "puts the largest weight from",
    "First token": "Spread evenly, it would get",
    "What it writes": "The longest vectors",
    "Leave one out": "goes from",
    "Over a corpus": "is largest in",
    "Your corpus": "How long will it take?",
}
NODES = "document.querySelectorAll('*').length"


def click_head(page: Page, number: int, *, aside: int = 0) -> None:
    """Clicks the head of this number, counted layer by layer; aside: so many pixels off its middle."""
    wait_until_true(page, f"({MIDDLE})(0) !== null")
    wait_until_settled(page)
    page.evaluate(STILL)
    place = page.evaluate(MIDDLE, number)
    page.mouse.click(place[0] + aside, place[1] + aside)


def linked(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def test_a_tile_opens_its_head_and_leads_to_all_that_is_known_of_it(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/all_heads", model="stories", text=TEXT, place="decoder.0.self", head=0)
    expect(page.get_by_text("All about L0H0")).to_be_visible()
    click_head(page, 6, aside=15)
    expect(page.get_by_text("All about L1H2")).to_be_visible()
    expect(page.get_by_test_id("head-picker")).to_contain_text("L1H2")
    page.get_by_text("All about L1H2").click()
    page.wait_for_url("**/head?**")
    assert linked(page) | {"text": [TEXT], "head": ["2"]} == linked(page)
    expect(page.get_by_test_id("head-picker")).to_contain_text("L1H2")


def test_a_bar_of_the_list_opens_its_head(open_page: Callable[..., Page]) -> None:
    page = open_page("/all_heads", model="stories", text=TEXT, show="Pattern", head=0)
    show(page, "List")
    wait_until_settled(page)
    click_mark(page.locator(BARS).first, "L0H1")
    expect(page.get_by_test_id("head-picker")).to_contain_text("L0H1")  # the largest score


@pytest.mark.walk
def test_views_are_clicked_through(open_page: Callable[..., Page]) -> None:
    page = open_page("/all_heads", model="stories", text=TEXT)
    each_shows(page, VIEWS, then=assert_opens_on_its_picture)
    show(page, "Leave one out")
    click_head(page, 1)
    expect(page.get_by_text("Leave out L0H1 on Explore")).to_be_visible()


@pytest.mark.walk
def test_a_grid_of_many_heads_on_a_long_text_is_a_light_page(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/all_heads", model="minilm", text="the cat saw a dog " * 50)
    expect(page.get_by_text("the largest weight of a block of 8")).to_be_visible()
    wait_until_true(page, f"({MIDDLE})(71) !== null")
    assert page.evaluate(NODES) < 3000
