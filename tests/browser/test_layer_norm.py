"""The layer norm page in a real browser: a click on a token's bar fills the formula."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.controls import BARS, click_mark, download, put_away
from tests.legible import STILL

TEXT = "the cat saw the dog"


@pytest.mark.walk
def test_a_bar_and_a_dimension_fill_the_formula(open_page: Callable[..., Page]) -> None:
    page = open_page("/layer_norm", model="stories", text=TEXT)
    expect(page.get_by_text("What to look for.")).to_be_visible()
    expect(page.get_by_text("Token 0 the, with")).to_be_visible()
    click_mark(page.locator(BARS).nth(4), "choose token 4")
    expect(page.get_by_text("Token 4 ·dog, with")).to_be_visible()
    field = page.get_by_role("spinbutton", name="Dimension")
    field.fill("7")
    field.press("Enter")
    expect(page.locator(".katex", has_text="7").last).to_be_visible()


@pytest.mark.walk
@pytest.mark.parametrize(("width", "target"), [(1440, 24), (390, 44)])
def test_behind_the_dots_code_and_table_are_made_when_opened_and_fit_the_screen(
    page: Page, open_page: Callable[..., Page], width: int, target: int
) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    open_page("/layer_norm", model="stories", text=TEXT)
    dots = page.get_by_role("button", name="More: check, save, code, table", exact=True)
    box = dots.bounding_box()
    assert min(box["width"], box["height"]) >= target
    expect(page.get_by_text("✓ largest difference")).to_be_visible()
    expect(page.get_by_test_id("stDataFrame")).to_have_count(0)
    dots.press("Enter")
    behind = page.get_by_role("dialog", name="More: ")
    expect(behind.get_by_text("Check: recomputed in double precision")).to_be_visible()
    saved = download(page, behind.get_by_role("button", name="Save picture"))
    assert saved.suggested_filename == "layer-norm-spread.html"
    expect(behind.get_by_test_id("stCode")).to_be_visible()
    expect(behind.get_by_test_id("stDataFrame")).to_be_attached()
    page.evaluate(STILL)
    box = behind.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    assert behind.evaluate("behind => behind.scrollWidth <= behind.clientWidth")
    behind.get_by_role("radio", name="torch.nn").click()
    put_away(page, behind)
    expect(dots).to_be_focused()
    expect(page.get_by_test_id("stDataFrame")).to_have_count(0)
