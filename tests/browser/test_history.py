"""Back and Forward among the views of a page: each entry of the browser's history shows what it showed."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import wait_until_settled
from tests.browser.controls import open_by_menu, show

LONG = "the cat saw the dog and " * 50  # more than a link on the page of code carries


def shows(page: Page, view: str) -> None:
    chosen = page.get_by_role("radio", name=view, exact=True, checked=True)
    listed = page.locator(f"[role=combobox][aria-label='Colour by'][value='{view}']")
    expect(chosen.or_(listed)).to_be_visible()
    wait_until_settled(page)


def choose(page: Page, view: str) -> None:
    show(page, view)
    page.wait_for_url("**show=**")
    shows(page, view)


def back_out_of(page: Page, path: str) -> None:
    """Goes back until another page is open. The menu may have made an entry without parameters. If one leaves
    it before the page has written them, they are written into the entry before."""
    while path in page.url:
        page.go_back()
        page.wait_for_url(lambda url: path not in url or "?" in url)
        wait_until_settled(page)


def test_back_returns_to_a_pages_first_view_and_forward_to_the_other(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/writing")
    shows(page, "Token by token")
    choose(page, "KV cache")
    page.go_back()
    shows(page, "Token by token")
    assert "show=" not in page.url
    page.go_forward()
    shows(page, "KV cache")


def test_back_goes_through_views_and_pages_that_were_reached_by_the_menu(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/")
    open_by_menu(page, "Heads")
    shows(page, "Maps")
    choose(page, "Pattern")
    choose(page, "Word to word")
    open_by_menu(page, "Tokens")
    shows(page, "Tokens")
    page.go_back()
    shows(page, "Word to word")
    page.go_back()
    shows(page, "Pattern")
    page.go_back()
    shows(page, "Maps")
    page.go_forward()
    shows(page, "Pattern")


@pytest.mark.walk
def test_back_keeps_a_text_that_is_too_long_for_the_links_of_the_menu(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/all_heads", text=LONG)
    open_by_menu(page, "Tokens")
    shows(page, "Tokens")
    page.wait_for_url("**/tokens?text=**")
    choose(page, "Two tokenizers")
    page.go_back()
    shows(page, "Tokens")
    expect(page.get_by_role("textbox", name="Your sentence")).to_have_value(LONG)
    back_out_of(page, "/tokens")
    shows(page, "Maps")
    expect(page.get_by_role("textbox", name="Your sentence")).to_have_value(LONG)


@pytest.mark.walk
def test_back_leads_through_the_page_that_opens_a_model_of_its_own(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/")
    open_by_menu(page, "Tokens")
    shows(page, "Tokens")
    open_by_menu(page, "Translation")
    shows(page, "Translate")
    page.wait_for_url("**/encoder_decoder?**")
    choose(page, "Alignment")
    page.go_back()
    shows(page, "Translate")
    back_out_of(page, "/encoder_decoder")
    shows(page, "Tokens")
    expect(page.get_by_role("combobox", name="Model")).to_have_value(re.compile("House GPT"))


@pytest.mark.walk
def test_another_page_begins_at_its_top_even_where_the_page_before_it_keeps_its_height(
    open_page: Callable[..., Page],
) -> None:
    """Streamlit leaves the old page in its place until the new one has come; its browser scrolls back only if
    the page got shorter meanwhile."""
    page = open_page("/library")
    page.add_style_tag(content=".stMainBlockContainer { min-height: 9000px; }")
    page.evaluate("document.querySelector('.stMain').scrollTop = 3000")
    page.get_by_test_id("stSidebar").get_by_role("link", name="Experiments").click()
    page.wait_for_url("**/experiments**")
    expect(page.get_by_test_id("stMain")).to_have_js_property("scrollTop", 0)


def test_a_mouse_opens_a_page_as_it_is_pressed_and_once(open_page: Callable[..., Page]) -> None:
    page = open_page("/")
    page.locator(".menu a", has_text="Cost").hover()
    page.mouse.down()
    page.wait_for_url("**/shapes_and_cost**")
    page.mouse.up()
    wait_until_settled(page)
    page.go_back()
    wait_until_settled(page)
    assert "/shapes_and_cost" not in page.url
    page.locator(".menu a", has_text="Cost").press("Enter")  # that the mouse has pressed before
    page.wait_for_url("**/shapes_and_cost**")


def test_what_was_typed_is_read_where_the_mouse_leads_on(open_page: Callable[..., Page]) -> None:
    page = open_page("/")
    page.get_by_role("textbox", name="Your sentence").fill("the dog slept")
    page.locator(".menu a", has_text="Cost").hover()
    page.mouse.down()
    page.mouse.up()
    page.wait_for_url("**/shapes_and_cost**")
    wait_until_settled(page)
    expect(page.get_by_role("textbox", name="Your sentence")).to_have_value("the dog slept")
    assert "dog" in page.url
