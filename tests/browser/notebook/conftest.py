"""Pages without Jupyter, for the tests of the widget."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests import chromium
from tests.browser.notebook.notebook import ADDRESS, Notebook


@pytest.fixture
def open_notebook(browser: Browser) -> Iterator[Callable[..., Notebook]]:
    """Call it for a page without Jupyter. At the end it must have raised nothing and asked for nothing."""
    opened: list[tuple[Page, Notebook]] = []
    troubles: list[str] = []

    def new(*, width: int = 1000, **more: object) -> Notebook:
        page = chromium.new_page(browser, viewport={"width": width, "height": 900})
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on(
            "console", lambda said: troubles.append(said.text) if said.type == "error" else None
        )
        opened.append((page, Notebook(page, **more)))  # type: ignore[arg-type]
        return opened[-1][1]

    yield new
    asked = [address for _, notebook in opened for address in notebook.asked]
    for page, _ in opened:
        page.close()
    assert troubles == []
    local = ("blob:", "data:", f"{ADDRESS}/")
    assert [address for address in asked if not address.startswith(local)] == []
