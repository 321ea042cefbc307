"""Pages of a real Chromium with the explorer alone in them."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests import chromium
from tests.browser.explorer.stage import ADDRESS, Stage, serve, troubles_of


@pytest.fixture(scope="module")
def new_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Call it for a page at the explorer's address; `without` names a file that cannot be loaded."""
    pages: list[Page] = []

    def new(*, width: int = 1040, without: str | None = None) -> Page:
        page = chromium.new_page(browser, viewport={"width": width, "height": 1000})
        page.on("pageerror", lambda error: troubles_of(page).append(str(error)))
        page.route(ADDRESS + "/**", serve)
        if without:
            page.route(f"**/{without}*", lambda route: route.abort())
        page.goto(ADDRESS + "/")
        pages.append(page)
        return page

    yield new
    for page in pages:
        page.close()


@pytest.fixture(scope="module")
def wide(new_page: Callable[..., Page]) -> Page:
    """One page for most tests: each mounts its own explorer in it."""
    return new_page()


@pytest.fixture(scope="module")
def narrow(new_page: Callable[..., Page]) -> Page:
    """A page as wide as a phone leaves it."""
    return new_page(width=358)


@pytest.fixture
def mounted() -> Iterator[Callable[[Page], Stage]]:
    """Mounts an explorer in a page that has no layers yet; at the end it must have raised nothing and shown
    no NaN."""
    stages: list[Stage] = []

    def mount(page: Page) -> Stage:
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
