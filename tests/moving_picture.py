"""The moving picture of the README: the attention page acted on, one frame an act.

`python -m tests.moving_picture` writes docs/moving.gif.
"""

import io
import tempfile
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page

from tests.bench.chromium import PATIENCE, browsing
from tests.bench.server import serving
from tests.screens import settled_picture

TARGET = Path(__file__).resolve().parents[1] / "docs" / "moving.gif"
SCREEN = {"width": 1440, "height": 1110}
SIZE = (960, 740)
COLOURS = 96
MILLISECONDS = 1800  # a frame


def clicked(testid: str) -> Callable[[Page], None]:
    """Clicks a part of the explorer."""
    return lambda page: page.get_by_test_id(testid).click()


def unmasked(page: Page) -> None:
    """Lifts the causal mask above the picture."""
    page.get_by_test_id("stRadio").get_by_text("none: all may look", exact=True).click()


ACTS: tuple[Callable[[Page], None], ...] = (
    clicked("stage-scores"),
    clicked("stage-scaled"),
    clicked("stage-masked"),
    clicked("stage-weights"),
    clicked("head-2"),
    clicked("head-7"),
    unmasked,
)


def frames(page: Page) -> list[Image.Image]:
    """The first view, and one picture after each act."""
    pictures = [settled_picture(page)]
    for act in ACTS:
        act(page)
        pictures.append(settled_picture(page))
    return [Image.open(io.BytesIO(picture)).convert("RGB").resize(SIZE) for picture in pictures]


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
        first, *others = (
            frame.quantize(COLOURS, dither=Image.Dither.NONE) for frame in frames(page)
        )
        first.save(
            TARGET,
            save_all=True,
            append_images=others,
            duration=MILLISECONDS,
            loop=0,
            optimize=True,
        )
    print(f"{TARGET.name} {TARGET.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
