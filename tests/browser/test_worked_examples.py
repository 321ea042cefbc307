"""Worked examples in a real browser: a link opens a step, cells can be edited, nothing overflows."""

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.controls import show
from tests.legible import STILL


def step(page: Page) -> Locator:
    return page.get_by_role("combobox", name="Step")


def number(page: Page) -> Locator:
    return page.get_by_test_id("stMetricValue")


def choose_first_cell(page: Page) -> None:
    """Clicks on the first number of the table of inputs, which is drawn and has no elements."""
    table = page.get_by_test_id("stDataFrame").first
    expect(table.locator("canvas").first).to_be_visible()
    table.click(position={"x": 40, "y": 52})
    expect(table.locator("td[aria-selected=true]")).to_have_count(1)


def type_into_cell(page: Page, text: str) -> None:
    """Types over the chosen cell, once its field is open, and hands the number in."""
    page.keyboard.press("Enter")
    field = page.locator("#portal input")
    field.fill(text)
    field.press("Enter")


def test_a_link_opens_a_step_and_the_buttons_lead_on_and_back(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/worked_examples", example="the-cat-sat", step=5)
    expect(page.get_by_text("0/2 is 0.")).to_be_visible()
    expect(page.locator("td.erratum")).to_have_text(
        "10"
    )  # the figure struck out, and the right one
    page.get_by_role("button", name="Next →").click()
    expect(page.locator("td.erratum")).to_have_count(5)
    page.wait_for_url(lambda url: parse_qs(urlsplit(url).query)["step"] == ["6"])
    page.get_by_role("button", name="← Back").click()
    page.wait_for_url(lambda url: parse_qs(urlsplit(url).query)["step"] == ["5"])
    expect(page.locator("td.erratum")).to_have_count(1)
    page.reload()
    expect(page.get_by_text("0/2 is 0.")).to_be_visible()
    main = page.get_by_test_id("stMain")
    main.get_by_role("radio", name="Code", exact=True).click()
    shown = main.get_by_test_id("stCode").locator("code")
    expect(shown).to_contain_text("scaled = scores / 4**0.5")
    main.get_by_role("radio", name="loops", exact=True).click()
    expect(shown).to_contain_text("for j in range(3):  # each column")
    expect(shown).to_have_css("word-spacing", "0px")  # narrower spaces would halve what is indented


@pytest.mark.walk
def test_a_cell_that_is_edited_changes_the_steps_and_the_notes_numbers_come_back(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/worked_examples", example="softmax-of-three", step=2)
    expect(number(page)).to_have_text("27.2153")
    page.get_by_role("button", name="Change the numbers").click()
    choose_first_cell(page)
    type_into_cell(page, "5")
    expect(number(page)).to_have_text("173.1688")  # e^5 + e^-1.5 + e^3.2
    page.keyboard.press("Delete")
    expect(page.get_by_text("Scores has an empty cell.")).to_be_visible()
    type_into_cell(page, "4000")
    expect(page.get_by_text("Scores holds 4000, which is outside -100 to 100.")).to_be_visible()
    page.get_by_role("button", name="Reset to the starting numbers").click()
    expect(number(page)).to_have_text("27.2153")


@pytest.mark.walk
def test_an_erratum_leads_to_the_step_that_holds_it_and_the_step_to_the_errata(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/worked_examples", example="layer-norm-by-hand", show="Errata")
    erratum = page.locator("article", has_text="−3 / 2.236 is −1.34").first
    erratum.get_by_role("link", name="Layer norm").click()
    page.wait_for_url(lambda url: "layer-norm-by-hand" in url and "step=5" in url)
    expect(page.locator("td.erratum")).to_have_count(1)
    expect(page.get_by_text("−3 / 2.236 is −1.34")).to_be_visible()
    page.get_by_role("link", name="Errata of the notes").click()
    expect(page.locator("article").first).to_be_visible()
    expect(page.get_by_text("five sets of study notes")).to_be_attached()
    page.get_by_role("radio", name="Step by step").click()
    expect(step(page)).to_be_visible()
    page.wait_for_url(lambda url: "show" not in parse_qs(urlsplit(url).query))


@pytest.mark.walk
def test_a_teaching_page_leads_to_its_example(open_page: Callable[..., Page]) -> None:
    page = open_page("/prediction")
    show(page, "Tiny numbers")
    page.get_by_role("link", name="Change its numbers →").click()
    expect(page.get_by_role("heading", name="Worked examples")).to_be_visible()
    page.wait_for_url(
        lambda url: parse_qs(urlsplit(url).query).get("example") == ["most-probable-word"]
    )


@pytest.mark.walk
@pytest.mark.parametrize(
    ("example", "at"),
    [("sequence-in-three-steps", 5), ("most-probable-word", 2), ("two-padding-masks", 5)],
)
def test_long_lines_and_wide_pictures_scroll_inside_the_page_of_a_phone(
    page: Page, open_page: Callable[..., Page], example: str, at: int
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    open_page("/worked_examples", example=example, step=at)
    expect(page.locator(".js-plotly-plot .heatmaplayer image").first).to_be_attached()
    main = page.get_by_test_id("stMain")
    page.evaluate(STILL)
    assert main.evaluate("node => node.scrollWidth <= node.clientWidth")
    for formula in page.locator(".katex-display").all():
        assert formula.bounding_box()["width"] <= 390
