"""A real server and a real Chromium, for the tests that look at the pages as a visitor does.

A test takes `open_page` and says which page: `page = open_page("/", layer=2)`. Whatever the test
looks at, it fails at its end when a page logged an error, raised one, broke, or asked for anything
beyond our own server: the app must work without a network.
A test that provokes such trouble on purpose takes `troubles`, looks at the list and clears it.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, expect, sync_playwright
from playwright.sync_api import Error as PlaywrightError

from tests import chromium
from tests.one_server import shared

QUIET_APP = (
    "[data-testid=stApp][data-test-connection-state=CONNECTED][data-test-script-state=notRunning]"
)
# Notes in the page whether the server has answered since the app last asked it something. Streamlit itself
# says that a script runs only when the first answer is here.
NOTE_ANSWERS = """(() => {
    const { send } = WebSocket.prototype;
    WebSocket.prototype.send = function (...given) {
        window.unanswered = true;
        const answered = () => { window.unanswered = false; };
        for (const event of ["message", "close"]) this.addEventListener(event, answered, { once: true });
        return send.apply(this, given);
    };
})()"""
# The app is at rest, and stays so for some frames: between two runs it rests too, and what an answer says
# is shown a moment after it has come. What never rests is named. The content policy forbids the evaluation
# by which Playwright's own waiting looks a second time.
AT_REST = """(quiet) => new Promise((done, fail) => {
    const left = () => window.unanswered ? "the server has not answered"
        : !document.querySelector(quiet) ? "the script runs"
        : document.querySelector("[data-stale=true], [data-testid=stSkeleton]")?.outerHTML.slice(0, 200);
    const until = performance.now() + 120_000;
    let frames = 0;
    const look = () => {
        const what = left();
        frames = what ? 0 : frames + 1;
        if (frames === 5) done();
        else if (performance.now() > until) fail(new Error(`The page does not rest: ${what}`));
        else requestAnimationFrame(look);
    };
    setTimeout(look, 50);  // what a click asks for is sent by then
})"""
TERMINAL_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
SCREEN: dict[str, Any] = {
    "viewport": {"width": 1440, "height": 900},
    "color_scheme": "light",
    "reduced_motion": "reduce",  # what moves is drawn sixty times a second, without a graphics card
}
LOG = pytest.StashKey[Path]()


@pytest.fixture(scope="session")
def server(pytestconfig: pytest.Config) -> str:
    """The address of the run's server."""
    started = shared()
    pytestconfig.stash[LOG] = started.log
    return started.address


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Show what the server said beside every failure."""
    report = yield
    log = item.config.stash.get(LOG, None)
    if report.failed and log is not None and log.exists():
        said = TERMINAL_COLOUR.sub("", log.read_text())
        report.sections.append(("server log, its end", said[-8000:]))
    return report


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def browser(playwright: Playwright) -> Iterator[Browser]:
    """Chromium from CHROMIUM or PATH. Without one these tests fail: they are never left out."""
    found = chromium.path()
    if not found:
        pytest.fail(f"No Chromium: set CHROMIUM, or put one of {chromium.NAMES} on PATH.")
    expect.set_options(timeout=chromium.MILLISECONDS_TO_APPEAR)
    opened = playwright.chromium.launch(executable_path=found, args=chromium.ARGUMENTS)
    yield opened
    opened.close()


@pytest.fixture
def troubles() -> list[str]:
    """What went wrong on any page of this test so far, one line each; the end wants it empty."""
    return []


@pytest.fixture
def fresh_page(browser: Browser, server: str, troubles: list[str]) -> Iterator[Callable[..., Page]]:
    """Call it for another visitor: a page that shares no cookie and no session with the others.

    Keywords go to the browser context, for instance `color_scheme="dark"`.
    """
    contexts: list[BrowserContext] = []

    def fresh(**options: object) -> Page:
        context = browser.new_context(**(SCREEN | {"base_url": server} | options))
        contexts.append(context)
        page = context.new_page()
        watch(page, server, troubles.append)
        return page

    yield fresh
    for context in contexts:
        troubles += [line for page in context.pages for line in shown_exceptions(page)]
        context.close()
    assert troubles == []


def watch(page: Page, server: str, tell: Callable[[str], None]) -> None:
    """Tell every error of the page's scripts and every request to another host; note answers, to settle."""
    page.set_default_timeout(chromium.MILLISECONDS_TO_APPEAR)
    page.add_init_script(NOTE_ANSWERS)
    page.on("pageerror", lambda error: tell(f"uncaught: {error}"))
    page.on(
        "console",
        lambda message: (
            tell(f"console: {message.text} ({message.location['url']})")
            if message.type == "error"
            else None
        ),
    )
    page.on(
        "request",
        lambda request: (
            tell(f"request beyond our server: {request.url}")
            if is_foreign(request.url, server)
            else None
        ),
    )


def is_foreign(url: str, server: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme not in {"data", "blob", "about"} and parts.netloc != urlsplit(server).netloc


def broken_pages(log: Path, since: int) -> list[str]:
    """What the server's log says of pages that broke, from this byte of it on."""
    with log.open("rb") as lines:
        lines.seek(since)
        return [line.decode() for line in lines if b'"event": "page broke"' in line]


def shown_exceptions(page: Page) -> list[str]:
    boxes = page.locator("[data-testid=stException], [class*=st-key-broken-]").all()
    return [f"exception on the page: {box.inner_text()}" for box in boxes]


@dataclass
class Tab:
    """The one page that a worker keeps: scripts that were read and compiled here need not be again."""

    page: Page
    troubles: list[str]

    @classmethod
    def opened(cls, browser: Browser, server: str) -> "Tab":
        tab = cls(browser.new_context(base_url=server, **SCREEN).new_page(), [])
        watch(tab.page, server, lambda line: tab.troubles.append(line))
        return tab

    def leave(self) -> None:
        """Away from the app, with nothing kept. Raises playwright's Error where that cannot be."""
        self.troubles = []
        for other in self.page.context.pages:
            if other != self.page:
                other.close()
        self.page.context.set_offline(False)
        self.page.evaluate("() => { localStorage.clear(); sessionStorage.clear() }")
        self.page.goto("/_stcore/health")  # its own address, so that what is compiled stays
        self.page.context.clear_cookies()
        self.page.set_viewport_size(SCREEN["viewport"])
        self.page.emulate_media(
            color_scheme=SCREEN["color_scheme"], reduced_motion=SCREEN["reduced_motion"]
        )


@pytest.fixture(scope="session")
def tabs(browser: Browser) -> Iterator[dict[str, Tab]]:
    """The pages that are kept, by the address of their server."""
    kept: dict[str, Tab] = {}
    yield kept
    for tab in kept.values():
        tab.page.context.close()


@pytest.fixture
def page(
    browser: Browser,
    tabs: dict[str, Tab],
    server: str,
    troubles: list[str],
    pytestconfig: pytest.Config,
) -> Iterator[Page]:
    """The first visitor's page, 1440 by 900, light, still away from the app: its next session is new.

    It is the worker's own and goes on to the next test. A test that adds listeners, scripts or routes
    to a page takes a `fresh_page`.
    """
    if server not in tabs:
        tabs[server] = Tab.opened(browser, server)
    tab = tabs[server]
    tab.troubles = troubles
    log = pytestconfig.stash.get(LOG, None)  # not of a server with planted faults
    before = log.stat().st_size if log else 0
    yield tab.page
    troubles += broken_pages(log, before) if log else []
    for one in tab.page.context.pages:
        troubles += shown_exceptions(one)
    try:
        tab.leave()
    except PlaywrightError:  # its server has ended, or the test has closed it
        tabs.pop(server).page.context.close()
    assert troubles == []


@pytest.fixture
def open_page(page: Page) -> Callable[..., Page]:
    """Call it with a path and query parameters; it hands back the page once it has settled.

    `on` opens it on another visitor's page: `open_page("/library", on=fresh_page())`.
    """

    def open_(path: str = "/", *, on: Page | None = None, **parameters: object) -> Page:
        opened = on or page
        opened.goto(f"{path}?{urlencode(parameters)}" if parameters else path)
        wait_until_settled(opened)
        return opened

    return open_


@pytest.fixture
def settle(page: Page) -> Callable[..., Page]:
    """Call it after an action that changes nothing a test can expect by its text.

    Where there is such a text, `expect(...)` on it is quicker and surer.
    """

    def settled(on: Page | None = None) -> Page:
        wait_until_settled(on or page)
        return on or page

    return settled


def wait_until_settled(page: Page) -> None:
    """Wait until the script has run and nothing on the page is left over from an earlier run.

    Right after a click the app still says that nothing runs, until the server has answered.
    Where a picture is still a skeleton, Plotly's own code is on its way.
    """
    page.locator(QUIET_APP).wait_for(state="attached")
    page.get_by_test_id("stElementContainer").first.wait_for(state="attached")
    page.evaluate(AT_REST, QUIET_APP)
