"""Pictures of every page as a visitor first sees it: wide and phone, light and dark.

`python -m tools.screens` (`make screens`) writes docs/screens. Names of pages as arguments take these
alone; --tall takes the whole page instead of the first screen, --to another folder.
"""

import argparse
import io
import tempfile
from itertools import product
from pathlib import Path, PurePath

from PIL import Image
from playwright.sync_api import Browser, Page

from bench.chromium import PATIENCE, browsing
from model.system.files import write_whole
from tests.browser.conftest import wait_until_settled
from tests.server import serving
from viz.state.navigation import PAGES

SCREENS = Path(__file__).resolve().parents[1] / "docs" / "screens"
WIDTHS = {"wide": (1440, 900), "phone": (390, 844)}
THEMES = ("light", "dark")
TALL = 3000  # pixels: higher than any page
SETTLED = 900  # milliseconds for pictures that are drawn after the page has come to rest


def name(file: str) -> str:
    """What a page's pictures are called."""
    return PurePath(file).stem


def take(browser: Browser, base: str, names: list[str], folder: Path, *, tall: bool) -> None:
    """Takes the named pages, or all; prints each as it is done."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [page for page in PAGES if not names or name(page.file) in names]
    for (width, (across, down)), theme in product(WIDTHS.items(), THEMES):
        screen = {"width": across, "height": TALL if tall else down}
        # One context for all pages: it keeps the scripts, and each page is a new session all the same.
        with browser.new_context(viewport=screen, base_url=base, color_scheme=theme) as context:
            opened = context.new_page()
            opened.set_default_timeout(PATIENCE)
            for page in wanted:
                opened.goto(f"/{page.address}")
                picture = folder / f"{name(page.file)}-{width}-{theme}.png"
                write_whole(picture, compact(settled_picture(opened)))
                print(f"{picture.name} {picture.stat().st_size // 1000} kB", flush=True)


def settled_picture(page: Page) -> bytes:
    """A PNG of what is on the screen, once nothing moves."""
    wait_until_settled(page)
    for explorer in page.get_by_test_id("explorer").all():
        explorer.and_(page.locator("[data-ready=true]")).wait_for(state="visible")
    page.wait_for_timeout(SETTLED)
    return page.screenshot(animations="disabled")


def compact(png: bytes) -> bytes:
    """The same picture in all its colours, which mean something, as small as a PNG can be."""
    written = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").save(written, "PNG", optimize=True)
    return written.getvalue()


def gallery() -> str:
    """All pictures in Markdown, a table a page."""
    lines = ["# Every page, as a visitor first sees it", "", "Taken by `make screens`.", ""]
    for page in PAGES:
        cells = [
            f"![{page.title}, {width}, {theme}]({name(page.file)}-{width}-{theme}.png)"
            for width in WIDTHS
            for theme in THEMES
        ]
        heads = [f"{width}, {theme}" for width in WIDTHS for theme in THEMES]
        lines += [f"## {page.title}", "", f"| {' | '.join(heads)} |", "|---|---|---|---|"]
        lines += [f"| {' | '.join(cells)} |", ""]
    return "\n".join(lines)


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("names", nargs="*")
    reader.add_argument("--to", type=Path, default=SCREENS)
    reader.add_argument("--tall", action="store_true")
    asked = reader.parse_args()
    with (
        tempfile.TemporaryDirectory() as scratch,
        serving(Path(scratch) / "server.log") as server,
        browsing() as browser,
    ):
        take(browser, server.address, asked.names, asked.to, tall=asked.tall)
    write_whole(asked.to / "README.md", gallery().encode())


if __name__ == "__main__":
    main()
