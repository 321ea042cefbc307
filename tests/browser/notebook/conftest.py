"""Pages without Jupyter, for the tests of the widget."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.closed_pages import closed_pages
from tests.browser.notebook.notebook import ADDRESS, Notebook


@pytest.fixture
def open_notebook(browser: Browser) -> Iterator[Callable[..., Notebook]]:
    """Call it for a page without Jupyter."""
    yield from closed_pages(browser, Notebook, ADDRESS, width=1000)
