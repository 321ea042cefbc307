"""The pictures of the README: the attention page acted on, one frame an act, and a run that is changed.

`python -m tests.moving_picture` writes docs/moving.webp and docs/attention-changed.png.
"""

import io
import tempfile
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page

from tests.bench.chromium import PATIENCE, browsing
from tests.bench.server import serving
from tests.browser.controls import close_heads, pick_head
from tests.screens import compact, settled_picture

DOCS = Path(__file__).resolve().parents[1] / "docs"
MOVING, CHANGED = DOCS / "moving.webp", DOCS / "attention-changed.png"
SCREEN = {"width": 1440, "height": 1110}
TALLER = 1250  # pixels, for what the change does
MILLISECONDS = 1800  # a frame


def clicked(testid: str) -> Callable[[Page], None]:
    """Clicks a part of the explorer."""
    return lambda page: page.get_by_test_id(testid).click()


def picked(head: int) -> Callable[[Page], None]:
    """Chooses a head of this layer in the work bar."""

    def act(page: Page) -> None:
        pick_head(page, head)
        close_heads(page)

    return act


def unmasked(page: Page) -> None:
    """Lifts the causal mask above the picture."""
    page.get_by_test_id("stRadio").get_by_text("none: all may look", exact=True).click()


ACTS: tuple[Callable[[Page], None], ...] = (
    clicked("stage-scores"),
    clicked("stage-scaled"),
    clicked("stage-masked"),
    clicked("stage-weights"),
    picked(2),
    picked(7),
    unmasked,
)


def frames(page: Page) -> list[Image.Image]:
    """The first view, and one picture after each act."""
    pictures = [settled_picture(page)]
    for act in ACTS:
        act(page)
        pictures.append(settled_picture(page))
    return [Image.open(io.BytesIO(picture)).convert("RGB") for picture in pictures]


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as scratch,
        serving(Path(scratch) / "server.log") as server,
        browsing() as browser,
        browser.new_context(viewport=SCREEN, base_url=server.address) as context,
    ):
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto("/attention")
        first, *others = frames(page)
        first.save(
            MOVING,
            save_all=True,
            append_images=others,
            duration=MILLISECONDS,
            loop=0,
            lossless=True,  # a colour means one thing: none may be mixed with its neighbours'
            quality=100,  # of the packing
            method=6,
        )
        page.set_viewport_size(SCREEN | {"height": TALLER})
        page.goto("/attention?mask=none")
        CHANGED.write_bytes(compact(settled_picture(page)))
    for written in (MOVING, CHANGED):
        print(f"{written.name} {written.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
