"""What a visitor clicks on every page."""

from playwright.sync_api import Locator, Page


def show(page: Page, name: str) -> None:
    """One of the options that stand side by side."""
    page.get_by_role("radio", name=name, exact=True).click()


def choose(page: Page, label: str, option: str) -> None:
    """An option of a list."""
    page.get_by_test_id("stSelectbox").filter(has_text=label).get_by_role("combobox").click()
    page.get_by_role("option", name=option).click()


def plots(page: Page) -> Locator:
    """Every chart: for a moment an old one may stand beside the new one."""
    return page.locator(".js-plotly-plot")
