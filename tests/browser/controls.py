"""What a visitor clicks on every page."""

from playwright.sync_api import Locator, Page, expect


def show(page: Page, name: str) -> None:
    """One of the options that stand side by side."""
    page.get_by_role("radio", name=name, exact=True).click()


def choose(page: Page, label: str, option: str) -> None:
    """An option of a list."""
    page.get_by_test_id("stSelectbox").filter(has_text=label).get_by_role("combobox").click()
    page.get_by_role("option", name=option).click()


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


def plots(page: Page) -> Locator:
    """Every chart: for a moment an old one may stand beside the new one."""
    return page.locator(".js-plotly-plot")
