"""The pictures of the README: one row of scores becomes weights and an output, a run that is changed, and the
screen of the main job.

`python -m tools.moving_picture` writes docs/moving.webp, docs/attention-changed.png and docs/explore.png.
"""

import io
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page

from bench.chromium import PATIENCE, browsing
from model.system.files import write_whole
from tests.server import serving
from tools.screens import compact, settled_picture

DOCS = Path(__file__).resolve().parents[1] / "docs"
MOVING, *STILLS = DOCS / "moving.webp", DOCS / "attention-changed.png", DOCS / "explore.png"
ADDRESSES = ("/?detail=full&mask=none", "/?mask=none")  # of the pictures that do not move
SCREEN = {"width": 1440, "height": 900}
BEATS, STEPS = 6, 8  # of Play, and moments of each that are drawn
MOMENTS = range(1, BEATS * STEPS + 1)
PASSING, RESTING = 90, 1800  # milliseconds of a moment, and of the end of a beat, which is read
MOVE = "(slider, moment) => { slider.value = moment; slider.dispatchEvent(new Event('input')); }"


def frames(page: Page) -> list[Image.Image]:
    """The page at the moments of Play, one after another."""
    page.get_by_test_id("open-play").click()
    slider = page.get_by_test_id("scrub")
    pictures = []
    for moment in MOMENTS:
        slider.evaluate(MOVE, moment / STEPS)
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
        page.goto("/")
        first, *others = frames(page)
        first.save(
            MOVING,
            save_all=True,
            append_images=others,
            duration=[PASSING if moment % STEPS else RESTING for moment in MOMENTS],
            loop=0,
            lossless=True,  # a colour means one thing: none may be mixed with its neighbours'
            quality=100,  # of the packing
            method=6,
        )
        for address, picture in zip(ADDRESSES, STILLS, strict=True):
            page.goto(address)
            write_whole(picture, compact(settled_picture(page)))
    for written in (MOVING, *STILLS):
        print(f"{written.name} {written.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
