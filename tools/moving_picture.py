"""The picture of the README: the mask is lifted on Explore and comes back.

`python -m tools.moving_picture` writes docs/moving.webp.
"""

import io
import tempfile
from collections.abc import Iterator
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, ViewportSize

from bench.chromium import PATIENCE, browsing
from tests.server import serving
from tools.screens import settled_picture

DOCS = Path(__file__).resolve().parents[1] / "docs"
MOVING = DOCS / "moving.webp"
SCREEN: ViewportSize = {"width": 1440, "height": 900}
# Frames come only when one is asked for, so each picture is exact on any machine.
STUB = """() => {
    const waiting = new Map();
    let last = 0;
    window.requestAnimationFrame = (task) => (waiting.set((last += 1), task), last);
    window.cancelAnimationFrame = (name) => waiting.delete(name);
    window.frame = (now) => {
        const tasks = [...waiting.values()];
        waiting.clear();
        for (const task of tasks) task(now);
    };
}"""
STEP, PASSING = (
    35,
    50,
)  # milliseconds of the page from one picture to the next, and how long each is seen
BEFORE, AFTER, END = 1000, 1500, 450  # milliseconds of what is read


def pictures(page: Page) -> Iterator[tuple[bytes, int]]:
    """The page while the mask is lifted and comes back: each picture with its milliseconds."""
    fade = page.locator(".explorer .figure > .fade")
    wait = page.wait_for_timeout
    yield settled_picture(page), BEFORE
    page.evaluate(STUB)
    now = 0
    for rest in (AFTER, END):
        page.get_by_text("Hide the future").click()
        while not fade.is_visible():  # the run is awaited; what comes before the way is not shown
            page.evaluate("now => window.frame(now)", now)
            wait(STEP)
        wait(BEFORE)  # what stands beside the map has arrived too
        while fade.is_visible():
            now += STEP
            page.evaluate("now => window.frame(now)", now)
            yield page.screenshot(animations="disabled"), PASSING
        for _ in range(10):  # what follows the way, such as the row's list
            now += STEP
            page.evaluate("now => window.frame(now)", now)
            wait(STEP)
        yield page.screenshot(animations="disabled"), rest


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as scratch,
        serving(Path(scratch) / "server.log") as server,
        browsing() as browser,
        browser.new_context(
            viewport=SCREEN, base_url=server.address, reduced_motion="no-preference"
        ) as context,
    ):
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto("/")
        taken, durations = zip(*pictures(page), strict=True)
        first, *others = (Image.open(io.BytesIO(one)).convert("RGB") for one in taken)
        first.save(
            MOVING,
            save_all=True,
            append_images=others,
            duration=list(durations),
            loop=0,
            lossless=True,  # a colour means one thing: none may be mixed with its neighbours'
            quality=100,  # of the packing
            method=6,
        )
    print(f"{MOVING.name} {MOVING.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
