"""The layer norm page in a real browser: a click on a token's bar or mark fills the formula."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.controls import BARS, MARKS, click_mark, each_shows, show

TEXT = "the cat saw the dog"
SAID = {
    "Two variances": "13.4 % apart",
    "RMS norm beside it": "An RMS norm subtracts no mean.",
    "Where it stands": "pre-norm: x + f(norm(x))",
}


def test_a_bar_a_mark_and_every_view(open_page: Callable[..., Page]) -> None:
    page = open_page("/layer_norm", model="stories", text=TEXT)
    expect(page.get_by_text("What to look for.")).to_be_visible()
    expect(page.get_by_text("Token 0 the, dimension 0:")).to_be_visible()
    click_mark(page.locator(BARS).nth(4), "choose token 4")
    expect(page.get_by_text("Token 4 ·dog, dimension 0:")).to_be_visible()
    show(page, "Input")
    click_mark(page.locator(MARKS).nth(1), "choose token 1")
    expect(page.get_by_text("Token 1 ·cat, dimension 0:")).to_be_visible()
    show(page, "Per token")
    expect(page.get_by_test_id("stDataFrame").first).to_be_visible()
    each_shows(page, SAID)
