"""The model as code in a real browser: lines and blocks of the map light each other, and a line leads on."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

DARK = "rgba(0, 0, 0, 0)"


def test_a_line_lights_its_block_leads_to_its_numbers_and_the_script_is_saved(
    open_page: Callable[..., Page],
) -> None:
    page = open_page(
        "/model_as_code", text="Tom Hill saw a red ball", place="decoder.2.self", head=3
    )
    listing, blocks = page.locator(".listing"), page.locator(".st-key-model-map")
    attention = blocks.get_by_role("link", name="attention")
    norm = blocks.get_by_role("link", name="norm").first
    expect(attention).to_have_css("background-color", DARK)
    line = listing.get_by_role("link", name="scores = q @ k.transpose(-2, -1)")
    line.focus()
    expect(attention).not_to_have_css("background-color", DARK)
    expect(norm).to_have_css("background-color", DARK)
    listing.get_by_role("link", name="normed = norm").first.hover()
    expect(norm).not_to_have_css("background-color", DARK)
    function = listing.locator(".part-feed_forward", has_text="def feed_forward")
    expect(function).to_have_css("background-color", DARK)
    blocks.get_by_role("link", name="feed-forward").hover()
    expect(function).not_to_have_css("background-color", DARK)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Script", exact=True).click()
    script = saved.value.path().read_text(encoding="utf-8")
    assert "scores = q @ k.transpose(-2, -1)  # (8, 6, 6)" in script
    page.evaluate("window.before = true")
    line.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("attention")
    expect(page.get_by_test_id("readout")).to_contain_text("L2H3")
    expect(page.get_by_test_id("explorer")).to_have_attribute("data-stage", "scores")
    assert page.evaluate("window.before")  # the page was not loaded anew


def test_the_lecture_view_shows_the_listing(open_page: Callable[..., Page]) -> None:
    page = open_page("/model_as_code", text="Tom Hill saw a red ball")
    expect(page.locator(".keys[data-ready=true]")).to_be_attached()
    page.keyboard.press("p")
    expect(page.get_by_role("textbox", name="Your sentence")).to_be_hidden()
    expect(page.locator(".listing")).to_be_in_viewport()
    expect(page.get_by_role("link", name="scores = q @ k")).to_be_visible()
