"""The main job in a real browser: type, look, choose a cell, change, copy the link, find it again."""

import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import wait_until_settled
from tests.browser.controls import choose, open_by_menu, pick_head, shown_view
from viz.state.navigation import PLACES

SENTENCE = "the cat saw the cat"


def box(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Your sentence")


def type_sentence(page: Page, text: str) -> None:
    box(page).fill(text)
    box(page).press("Enter")
    expect(columns(page).last).to_contain_text(text.split()[-1])


def columns(page: Page) -> Locator:
    """The tokens above the map."""
    return page.locator('[data-testid^="column-"]')


def explorer(page: Page) -> Locator:
    return page.get_by_test_id("explorer")


def in_link(page: Page, **parameters: str) -> None:
    """Waits until the address says so."""
    for name, value in parameters.items():
        page.wait_for_url(lambda url, n=name, v=value: parse_qs(urlsplit(url).query).get(n) == [v])


def test_the_whole_job_from_a_sentence_to_a_copied_link(
    open_page: Callable[..., Page], fresh_page: Callable[..., Page]
) -> None:
    page = open_page("/")
    type_sentence(page, SENTENCE)
    choose(page, "Model", "MiniLM")
    expect(page.get_by_test_id("readout")).to_contain_text("L0")
    pick_head(page, 8, layer=1)
    expect(page.get_by_test_id("readout")).to_contain_text("L1H8")
    expect(explorer(page)).to_have_attribute("data-head", "8")
    expect(page.get_by_test_id("stage-masked")).to_have_count(0)  # an encoder masks nothing
    page.get_by_test_id("column-2").click()
    expect(explorer(page)).to_have_attribute("data-query", "2")
    page.get_by_text("Divide scores by").click()
    in_link(page, scale="1.0")
    page.get_by_text("Hide the future").click()
    in_link(page, mask="causal")
    page.get_by_test_id("stage-masked").click()
    expect(explorer(page)).to_have_attribute("data-stage", "masked")
    in_link(page, scale="1.0", mask="causal", head="8", stage="masked", query="2", model="minilm")
    expect(page.get_by_test_id("legend")).to_contain_text("masked")

    copy = open_page("/?" + urlsplit(page.url).query, on=fresh_page())
    expect(box(copy)).to_have_value(SENTENCE)
    expect(explorer(copy)).to_have_attribute("data-ready", "true")
    for name in ("head", "stage", "query", "key"):
        shown = explorer(page).get_attribute(f"data-{name}")
        expect(explorer(copy)).to_have_attribute(f"data-{name}", shown or "")
    expect(copy.get_by_test_id("readout")).to_have_text(page.get_by_test_id("readout").inner_text())
    expect(copy.get_by_test_id("readout")).to_have_text(
        page.get_by_test_id("readout").text_content() or ""
    )


def test_a_switch_leaves_the_explorer_in_place(open_page: Callable[..., Page]) -> None:
    page = open_page("/")
    explorer(page).evaluate("element => { element.dataset.same = 'yes' }")
    pick_head(page, 1)
    page.get_by_text("Divide scores by").click()
    expect(explorer(page)).to_have_attribute("data-same", "yes")
    expect(explorer(page)).to_have_attribute("data-head", "1")
    in_link(page, head="1", scale="1.0")


def test_equal_words_keep_their_own_rows_and_columns(open_page: Callable[..., Page]) -> None:
    page = open_page("/", text=SENTENCE)
    expect(explorer(page)).to_have_attribute("data-ready", "true")
    expect(columns(page)).to_have_count(5)


def test_the_view_is_kept_across_pages(open_page: Callable[..., Page]) -> None:
    page = open_page("/")
    type_sentence(page, "Anna saw the red bag")
    pick_head(page, 1)
    in_link(page, head="1")
    open_by_menu(page, "Heads")
    expect(page.get_by_role("heading", name="All heads", level=1)).to_be_visible()
    expect(box(page)).to_have_value("Anna saw the red bag")
    open_by_menu(page, "Explore")
    expect(explorer(page)).to_have_attribute("data-head", "1")
    expect(box(page)).to_have_value("Anna saw the red bag")


def test_the_menu_and_the_keyboard_stay_while_pages_change(open_page: Callable[..., Page]) -> None:
    page = open_page("/")
    menu = page.get_by_role("navigation", name="Places").get_by_role("link")
    expect(menu).to_have_text(list(PLACES))
    menu.evaluate_all("links => { window.menuBefore = links; }")
    link = menu.get_by_text("Library")
    link.press("Enter")
    expect(page.get_by_role("heading", name="Library", level=1)).to_be_visible()
    expect(link).to_be_focused()
    expect(link).to_have_attribute("aria-current", "page")
    open_by_menu(page, "Papers")
    expect(link).to_have_attribute("aria-current", "true")
    foot = page.locator(".st-key-path")
    foot.get_by_role("link", name="← Worked examples").press("Enter")
    expect(page.get_by_role("heading", name="Worked examples", level=1)).to_be_visible()
    expect(foot.get_by_role("link", name="← Library")).to_be_focused()
    assert menu.evaluate_all(
        "links => links.length > 0 && links.every((link, at) => link === window.menuBefore[at])"
    )


# Counts how often the address is changed without a new entry of the history.
COUNT_REPLACED = """() => {
    const replace = history.replaceState;
    window.replaced = 0;
    history.replaceState = function (...all) { window.replaced++; return replace.apply(this, all); };
}"""


@pytest.mark.walk
def test_a_page_that_is_opened_adds_one_entry_to_the_history(
    open_page: Callable[..., Page], fresh_page: Callable[..., Page]
) -> None:
    # A tab that is used for long counts no further than 50.
    page = open_page("/", text="Anna saw", on=fresh_page())
    wait_until_settled(page)
    before = page.evaluate("history.length")
    page.evaluate(COUNT_REPLACED)
    open_by_menu(page, "Heads")
    expect(shown_view(page)).to_have_value("Maps")
    expect(page).to_have_url(
        re.compile(r"/all_heads\?text=Anna\+saw(&|$)")
    )  # the link's mark is gone
    wait_until_settled(page)
    assert page.evaluate("history.length") == before + 1
    # Once, when the mark went: each change takes a browser milliseconds.
    assert page.evaluate("replaced") == 1
    page.go_back()
    expect(page.get_by_role("heading", name="The attention visualizer")).to_be_visible()


def test_a_link_keeps_what_was_typed_though_the_address_is_late(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/", text="Anna saw")
    wait_until_settled(page)
    late = "/?text=Tom+saw"  # as if the page had not yet written what was typed after it
    page.evaluate(f"history.replaceState({{}}, '', '{late}')")
    open_by_menu(page, "Heads")
    expect(page).to_have_url(re.compile(r"/all_heads\?text=Anna\+saw(&|$)"))
    expect(box(page)).to_have_value("Anna saw")


def test_a_blank_sentence_gets_a_sentence_and_the_next_one_works(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/")
    box(page).fill("   ")
    box(page).press("Enter")
    expect(page.get_by_text("There is no text yet")).to_be_visible()
    type_sentence(page, "Anna saw the red bag")


def test_a_page_shows_itself_before_its_model_is_there(open_page: Callable[..., Page]) -> None:
    page = open_page("/", detail="full")
    expect(page.get_by_role("heading", name="The attention visualizer")).to_be_visible()
    expect(box(page)).to_be_visible()
    expect(explorer(page)).to_have_attribute("data-ready", "true")
