"""A Chromium with a stopwatch: from a click to the frame that shows what it asked for.

A click's own time stamp starts the watch. At every frame the wanted state is looked for; the task posted
from the frame that first has it runs before any other, when that frame is on its way to the screen. Headless
and without a graphics card, one frame (17 ms) is the least that can be seen. Bytes are counted apart from
times: to hear of every message takes time itself.
"""

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from playwright.sync_api import Browser, CDPSession, Locator, Page, sync_playwright

from tests import chromium

SCREEN = {"width": 1440, "height": 900}
PATIENCE = 60_000  # milliseconds until a measurement is given up
STOPWATCH = """
window.explorerRoot = () => {
    if (window.knownRoot?.isConnected) return window.knownRoot;
    for (const holder of document.querySelectorAll("*")) {
        const root = holder.shadowRoot?.querySelector(".explorer");
        if (root) return (window.knownRoot = root);
    }
    return null;
};
window.until = (wanted, patience, pause = 0) => new Promise((resolve, reject) => {
    const start = performance.now();
    const next = (look) => pause ? setTimeout(look, pause) : requestAnimationFrame(look);
    const look = () => {
        let seen = false;
        try { seen = wanted(); } catch { seen = false; }
        if (seen) return resolve();
        if (performance.now() - start < patience) return next(look);
        reject(new Error(`Not seen within ${patience / 1000} s: ${wanted}`));
    };
    next(look);
});
window.startWatch = (wanted, event, patience, pause) => {
    window.watched = new Promise((resolve, reject) => {
        const painted = (click) => {
            const told = () => resolve(performance.now() - click.timeStamp);
            scheduler.postTask(told, { priority: "user-blocking" });
        };
        const start = (click) => until(wanted, patience, pause)
            .then(() => painted(click), reject);
        document.addEventListener(event, start, { capture: true, once: true });
    });
};
"""


@dataclass
class Wire:
    """Bytes that came over the network while it was `counting`: HTTP bodies as sent, and websocket frames."""

    session: CDPSession
    http: int = 0
    frames: int = 0
    requests: int = 0

    def __post_init__(self) -> None:
        self.session.on("Network.loadingFinished", self._finished)
        self.session.on("Network.webSocketFrameReceived", self._received)

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Counts from nothing, as long as it is open."""
        self.http = self.frames = self.requests = 0
        self.session.send("Network.enable")
        yield
        self.session.send("Network.disable")

    @property
    def total(self) -> int:
        return self.http + self.frames

    def _finished(self, event: dict[str, float]) -> None:
        self.http += int(event["encodedDataLength"])
        self.requests += 1

    def _received(self, event: dict[str, dict[str, object]]) -> None:
        frame = event["response"]
        content = str(frame["payloadData"])
        binary = frame["opcode"] == 2
        self.frames += len(base64.b64decode(content)) if binary else len(content.encode())


@dataclass
class Tab:
    """One visitor's page."""

    page: Page
    session: CDPSession
    wire: Wire
    troubles: list[str] = field(default_factory=list)

    def throttle(self, rate: float) -> None:
        """Makes the browser's main thread so many times slower."""
        self.session.send("Emulation.setCPUThrottlingRate", {"rate": rate})

    def milliseconds(
        self, act: Callable[[], None], wanted: str, event: str = "click", pause: int = 0
    ) -> float:
        """Time from the click that `act` makes to the frame in which `wanted`, JavaScript, holds.
        pause: milliseconds between two looks, where to ask for every frame would take the server's time.

        Raises playwright's Error, which says what was wanted, where it is not seen in time.
        """
        self.page.evaluate(f"window.startWatch(() => {wanted}, '{event}', {PATIENCE}, {pause})")
        act()
        passed: float = self.page.evaluate("window.watched")
        return passed

    def dom_nodes(self) -> int:
        """Elements of the page, those in shadow roots included."""
        count: int = self.page.evaluate(
            """() => {
                const count = (root) => [...root.querySelectorAll("*")].reduce(
                    (sum, node) => sum + 1 + (node.shadowRoot ? count(node.shadowRoot) : 0), 0);
                return count(document);
            }"""
        )
        return count

    def explorer(self) -> Locator:
        """The explorer, once everything in it is drawn."""
        found = self.page.get_by_test_id("explorer").and_(self.page.locator("[data-ready=true]"))
        found.wait_for(state="visible", timeout=PATIENCE)
        return found

    def wait_for(self, wanted: str, pause: int = 0) -> None:
        """Waits until `wanted`, JavaScript, holds. The page's content policy forbids what playwright's
        own waiting does. pause: as for `milliseconds`. Raises playwright's Error where it is not seen."""
        self.page.evaluate(f"window.until(() => {wanted}, {PATIENCE}, {pause})")

    def rest(self, milliseconds: int = 350) -> None:
        """Time for the report of a choice and for the server's answer, so that clicks stand alone."""
        self.page.wait_for_timeout(milliseconds)


@contextmanager
def browsing() -> Iterator[Browser]:
    """A headless Chromium from CHROMIUM or PATH. Raises RuntimeError if there is none."""
    found = chromium.path()
    if not found:
        raise RuntimeError(f"No Chromium: set CHROMIUM, or put one of {chromium.NAMES} on PATH.")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=found, args=chromium.ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def tab(browser: Browser, address: str = "") -> Iterator[Tab]:
    """A fresh visitor's page with the stopwatch in it."""
    context = browser.new_context(viewport=SCREEN, base_url=address or None)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.add_init_script(STOPWATCH)
    session = context.new_cdp_session(page)
    made = Tab(page, session, Wire(session))
    page.on("pageerror", lambda error: made.troubles.append(str(error)))
    try:
        yield made
    finally:
        context.close()
