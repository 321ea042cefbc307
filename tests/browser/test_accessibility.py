"""Every page can be read, heard and worked without a mouse: rules of axe-core, keys, names, focus."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.accessibility import GRAVE, both_themes, look
from tests.browser.controls import open_by_menu
from tests.legible import STILL
from viz.state.navigation import PAGES

WIDTH_OF_A_PHONE = 390
STEPS = 60  # of Tab, from one control to any other of a page


@pytest.mark.walk
@pytest.mark.timeout(600)  # all pages in one tab: half a minute on a free machine
def test_no_page_has_a_serious_finding_in_either_theme(
    open_page: Callable[..., Page], settle: Callable[..., Page]
) -> None:
    page = open_page("/")
    troubles = []
    for entry in PAGES:
        open_by_menu(page, entry.title)
        heading = page.get_by_role("heading", level=1, name=entry.heading or entry.title)
        expect(heading).to_be_visible()
        settle()
        for drawn in page.get_by_test_id("explorer").all():
            expect(drawn).to_have_attribute("data-ready", "true")
        for theme, result in both_themes(page).items():
            troubles += [f"{entry.title}, {theme}: {trouble}" for trouble in result.grave]
            assert result.passed
        nameless = page.locator("[data-testid=stPlotlyChart]:not([aria-label])")
        if nameless.count():
            troubles.append(f"{entry.title}: {nameless.count()} pictures without words")
    assert troubles == []


@pytest.mark.walk
def test_the_rules_find_what_is_wrong(open_page: Callable[..., Page]) -> None:
    page = open_page("/library")
    page.evaluate(
        """() => document.querySelector("h1").insertAdjacentHTML("beforebegin",
            "<img src='data:,'><p style='color:#ccc;background:#fff'>hardly to be read</p>")"""
    )
    found = look(page, ("image-alt", "color-contrast"))
    assert {finding.rule for finding in found.findings} == {"image-alt", "color-contrast"}
    assert all(finding.impact in GRAVE for finding in found.findings)


def test_a_head_is_read_with_the_keyboard_alone(open_page: Callable[..., Page]) -> None:
    page = open_page("/")
    figure = page.get_by_test_id("figure")
    expect(page.get_by_test_id("explorer")).to_have_attribute("data-ready", "true")
    tab_to(page, figure)
    assert outlined(figure)
    before = page.get_by_test_id("explorer").get_attribute("data-key")
    figure.press("ArrowLeft")
    expect(page.get_by_test_id("explorer")).not_to_have_attribute("data-key", before or "")
    expect(page.get_by_test_id("announcement")).to_contain_text("query")
    tab_to(page, page.get_by_test_id("head-7"))
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_test_id("explorer")).to_have_attribute("data-head", "6")
    page = open_page("/tokens")
    page.get_by_role("radio", name="Your sentence").press("ArrowRight")
    page.get_by_role("radio", name="Tiny numbers").press("Enter")
    expect(page.get_by_role("button", name="Next →")).to_be_visible()
    page.get_by_role("button", name="Next →").focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    assert outlined(page.get_by_role("button", name="Next →"))


def tab_to(page: Page, target: Locator) -> None:
    """Reaches a control as a reader does."""
    for _ in range(STEPS):
        page.keyboard.press("Tab")
        if target.evaluate("one => one.getRootNode().activeElement === one"):
            return
    raise AssertionError(f"{STEPS} steps do not lead to {target}.")


@pytest.mark.walk
def test_nothing_moves_where_motion_is_unwanted_and_a_phone_never_scrolls_sideways(
    page: Page, open_page: Callable[..., Page]
) -> None:
    page.set_viewport_size({"width": WIDTH_OF_A_PHONE, "height": 844})
    for path in ("/", "/?show=More+changes", "/training"):
        open_page(path)
        page.evaluate(STILL)
        wide = page.get_by_test_id("stMain").evaluate("main => main.scrollWidth")
        assert wide <= WIDTH_OF_A_PHONE, path
    moving = page.evaluate(
        """() => document.getAnimations().filter((one) =>
            one.effect.getComputedTiming().iterations === Infinity).length"""
    )
    assert moving == 0


def outlined(place: Locator) -> bool:
    """Whether what has the keyboard is framed."""
    shown: bool = place.evaluate(
        """(node) => { const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(node);
            return (outlineStyle !== "none" && parseFloat(outlineWidth) >= 2) || boxShadow !== "none" }"""
    )
    return shown
