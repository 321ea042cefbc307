"""Pages of a real Chromium with the explorer alone in them."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests import chromium
from tests.browser.explorer.stage import ADDRESS, Stage, serve, troubles_of

WIDE, NARROW = 1040, 358  # pixels; the second is what a phone leaves
HEIGHT = 1000


def opened(browser: Browser, width: int, without: str | None = None) -> Page:
    """A page at the explorer's address; `without` names a file that cannot be loaded."""
    page = chromium.new_page(browser, viewport={"width": width, "height": HEIGHT})
    page.on("pageerror", lambda error: troubles_of(page).append(str(error)))
    page.route(ADDRESS + "/**", serve)
    if without:
        page.route(f"**/{without}*", lambda route: route.abort())
    page.goto(ADDRESS + "/")
    return page


@pytest.fixture
def page_without(browser: Browser) -> Iterator[Callable[[str], Page]]:
    """Call it for a page of its own that cannot load a file."""
    pages: list[Page] = []

    def new(file: str) -> Page:
        pages.append(opened(browser, WIDE, file))
        return pages[-1]

    yield new
    for page in pages:
        page.close()


@pytest.fixture(scope="session")
def kept(browser: Browser) -> Iterator[Callable[[int], Page]]:
    """Call it with a width for the page that the worker keeps, since Plotly and KaTeX take long to load. It
    has its size again, and no stored choice."""
    pages: dict[int, Page] = {}

    def as_new(width: int) -> Page:
        if width not in pages:
            pages[width] = opened(browser, width)
        page = pages[width]
        page.set_viewport_size({"width": width, "height": HEIGHT})
        if page.evaluate("localStorage.length"):
            page.evaluate("localStorage.clear()")
            page.goto(ADDRESS + "/")  # the explorer's modules know the choice too
        return page

    yield as_new
    for page in pages.values():
        page.close()


@pytest.fixture
def wide(kept: Callable[[int], Page]) -> Page:
    """The page of most tests: each mounts its own explorer in it."""
    return kept(WIDE)


@pytest.fixture
def narrow(kept: Callable[[int], Page]) -> Page:
    return kept(NARROW)


@pytest.fixture
def mounted(page_without: Callable[[str], Page]) -> Iterator[Callable[[Page], Stage]]:
    """Mounts an explorer in a page that has no layers yet; at the end it must have raised nothing and shown
    no NaN. page_without: its pages are closed after that."""
    stages: list[Stage] = []

    def mount(page: Page) -> Stage:
        troubles_of(page).clear()
        page.evaluate("globalThis[Symbol.for('attention-explorer-layers')]?.clear()")
        stages.append(Stage(page))
        return stages[-1]

    yield mount
    for stage in stages:
        assert troubles_of(stage.page) == []
        assert "NaN" not in stage.root.inner_text()


@pytest.fixture
def stage(mounted: Callable[[Page], Stage], wide: Page) -> Stage:
    return mounted(wide)
