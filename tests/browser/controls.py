"""What a visitor clicks on every page."""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress

import numpy as np
import pytest
from playwright.sync_api import Download, Locator, Page, expect

from tools.menu import link_to
from viz.state.navigation import PAGES

BARS = ".js-plotly-plot .barlayer .point path"
MARKS = ".js-plotly-plot .scatterlayer .point"


def wait_until_true(page: Page, expression: str) -> None:
    """Waits in the page. Playwright's own way evaluates a text again, which the app's policy forbids."""
    page.evaluate(
        f"async () => {{ while (!({expression})) await new Promise(go => setTimeout(go, 50)) }}"
    )


def show(page: Page, name: str) -> None:
    """One of the options that stand side by side, or a view of the page in its list."""
    side_by_side = page.get_by_role("radio", name=name, exact=True)
    views = shown_view(page)
    expect(side_by_side.or_(views).first).to_be_visible()
    if side_by_side.count():
        return side_by_side.click()
    views.click()
    views.fill(name)  # a long list shows a part of itself
    page.get_by_role("option", name=name, exact=True).click()


def shown_view(page: Page) -> Locator:
    """The list of the page's views, which says the one that is shown."""
    return page.locator("[class*=st-key-choose-show]").get_by_role("combobox")


def more(page: Page, panel: str) -> Locator:
    """What stands behind ⋯ at the upper right of a panel's picture, opened."""
    page.locator(f".st-key-more-{panel}").get_by_role("button").click()
    return page.get_by_role("dialog", name=re.compile("^More: "))


def put_away(page: Page, dialog: Locator) -> None:
    """Escape closes a dialog; a run that was under way when it was pressed may open it once more."""
    while dialog.count():
        page.keyboard.press("Escape")
        with suppress(AssertionError):
            expect(dialog).to_have_count(0, timeout=2_000)


def download(page: Page, button: Locator) -> Download:
    """Presses a button that saves a file; while the page runs, it may still save that of the run before."""
    with page.expect_download() as saved:
        button.click()
    return saved.value


def each_shows(
    page: Page,
    words: Mapping[str, str | re.Pattern[str]],
    then: Callable[[Page], object] = lambda page: None,
) -> None:
    """Opens views and switches one after another: each shows its words. Then come further checks of it."""
    for name, said in words.items():
        show(page, name)
        expect(page.get_by_text(said)).to_be_visible()
        then(page)


def choose(page: Page, label: str, option: str | re.Pattern[str]) -> None:
    """An option of a list."""
    page.get_by_test_id("stSelectbox").filter(has_text=label).get_by_role("combobox").click()
    page.get_by_role("option", name=option).click()


def open_by_menu(page: Page, title: str) -> None:
    """A page, by its name, through the menu."""
    link_to(page, next(entry for entry in PAGES if entry.title == title)).press("Enter")


def pick_head(page: Page, head: int, layer: int | None = None) -> None:
    """A head of the chosen layer, or of another one, in the work bar; the panel of heads stays open."""
    panel = page.get_by_test_id("heads")
    if not panel.is_visible():
        page.get_by_test_id("head-picker").click()
    if layer is not None:
        panel.get_by_role("rowheader", name=f"L{layer}", exact=True).click()
    panel.get_by_test_id(f"head-{head}").click()


def close_heads(page: Page) -> None:
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("heads")).to_be_hidden()


def arc_weights(page: Page) -> list[float]:
    """The weights of the arcs above the tokens of the map, by their widths."""
    widths = """paths => paths.filter((path) => path.style.display !== "none")
        .map((path) => +path.getAttribute("stroke-width") / 12)"""
    paths = page.locator(".header .arcs:not(.ghosts) path")
    weights: list[float] = paths.evaluate_all(widths)
    return weights


def drawn(row: np.ndarray) -> list[float]:
    """The weights of a row that are drawn as arcs."""
    return [one for one in row if one >= 0.01]


def plots(page: Page) -> Locator:
    """Every chart: for a moment an old one may stand beside the new one."""
    return page.locator(".js-plotly-plot")


def click_mark(mark: Locator, hover: str | re.Pattern[str]) -> None:
    """A bar or mark that Plotly drew; hover: what its label says.

    Plotly's drag layer lies over the marks, and a click means the mark that was hovered over last, which
    Plotly notes a moment after the mouse. So the mouse waits for the label; where what stands above is
    still growing, it goes there again.
    """
    mouse, label = mark.page.mouse, mark.page.locator(".hoverlayer .hovertext")
    for _ in range(5):
        mark.scroll_into_view_if_needed()
        place = mark.bounding_box()
        assert place is not None
        mouse.move(0, 0)
        mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
        with suppress(AssertionError):
            expect(label).to_contain_text(hover, timeout=10_000)
            mouse.down()
            return mouse.up()
    pytest.fail(f"no mark here says {hover!r}, but {label.all_text_contents()}")
