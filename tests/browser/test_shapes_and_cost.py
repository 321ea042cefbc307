"""Cost in a real browser: from the sentence's shapes to GPT-2 and to sizes of one's own."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import wait_until_settled
from tests.browser.controls import choose, more, plots, put_away


def open_sizes(page: Page) -> None:
    """Opens the box of sizes, which may be open still."""
    wait_until_settled(page)
    if not page.get_by_role("textbox", name="Width").is_visible():
        page.get_by_role("button", name="Other sizes", exact=True).click()


@pytest.mark.walk
def test_from_the_sentence_to_gpt_2_and_to_own_sizes_and_back_by_link(
    open_page: Callable[..., Page], fresh_page: Callable[..., Page]
) -> None:
    page = open_page("/shapes_and_cost", model="stories", text="Tom Hill saw a red ball")
    behind = more(page, "cost-to-scale")
    expect(behind.get_by_text("shapes recorded in this run")).to_be_visible()
    put_away(page, behind)
    choose(page, "Measure", "parameters")
    expect(page.get_by_text("Difference: 0.")).to_be_visible()
    choose(page, "Sizes of", "GPT-2 small")
    expect(page.get_by_text("124,439,808", exact=True).first).to_be_visible()
    choose(page, "Measure", "operations")
    expect(plots(page).filter(has_text="equal at 6,548.6 tokens")).to_have_count(1)
    page.get_by_role("slider", name="Length").focus()
    page.keyboard.press("ArrowRight")
    expect(plots(page).filter(has_text="2,048 × 768")).to_have_count(1)
    open_sizes(page)
    width = page.get_by_role("textbox", name="Width")
    width.fill("1536")
    width.press("Enter")
    expect(plots(page).filter(has_text="equal at 11,179.0 tokens")).to_have_count(1)
    page.wait_for_url("**-1536-**")
    copy = open_page(page.url, on=fresh_page())
    expect(plots(copy).filter(has_text="equal at 11,179.0 tokens")).to_have_count(1)
    expect(plots(copy).filter(has_text="2,048 × 1,536")).to_have_count(1)
    open_sizes(copy)
    copy.get_by_role("button", name="Reset these sizes").click()
    expect(plots(copy).filter(has_text="equal at 6,548.6 tokens")).to_have_count(1)


def test_heads_that_do_not_fit_get_a_sentence_and_can_be_mended(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/shapes_and_cost", **{"cost-preset": "GPT-2 small"})
    expect(plots(page).filter(has_text="Attention matrices").first).to_be_visible()
    open_sizes(page)
    heads = page.get_by_role("textbox", name="Heads")
    heads.fill("7")
    heads.press("Enter")
    expect(page.get_by_text("cannot be split into 7 equal heads")).to_be_visible()
    heads.fill("8")
    heads.press("Enter")
    expect(plots(page).filter(has_text="Attention matrices").first).to_be_visible()
