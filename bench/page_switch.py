"""What it takes to open another page, and how much of it is the frame around the page.

Two servers at once, one of them without the frame's own work (`bench.frameless`). A visitor without a
browser goes from page to page on both in turn: the processor's time is that of the whole server. Then a
browser, beside pages with Streamlit's own menu and the sentence above them: from the click to the whole page.
"""

import asyncio
from pathlib import Path
from urllib.parse import urlencode

from bench.cells import Measured, ms, table
from bench.chromium import Tab, browsing, tab
from bench.clicks import PRESS, QUIET
from bench.quantiles import median
from tests.server import Server, serving
from tests.visitor import Visitor
from tools.menu import link_to
from viz.state.navigation import HOME, PageEntry, entry
from viz.state.navigation import PAGES as ENTRIES

PAGES = {
    "Explore": "",
    "All heads": "all_heads",
    "Layer norm": "layer_norm",
    "Prediction": "prediction",
}
TEXT = "The cat sat on the mat because it was tired"
WARM, ROUNDS = 2, 50
SEEN = 8  # rounds of the browser through all pages
REST = 0.05  # seconds for what the server still does when the page is there


def measure(scratch: Path, short: bool) -> dict[str, object]:
    rounds = 5 if short else ROUNDS
    frameless = ("bench.frameless",)
    with serving(scratch / "server.log") as whole:
        with serving(scratch / "frameless.log", program=frameless) as bare:
            rows = asyncio.run(_switched(whole, bare, rounds))
        with serving(scratch / "plain.log", program=(*frameless, "--plain")) as plain:
            return {"rows": rows, "seen": _seen(whole, plain, 2 if short else SEEN)}


async def _switched(whole: Server, bare: Server, rounds: int) -> list[dict[str, object]]:
    """A row for each page: milliseconds of a processor with the frame and without it, bytes sent with it."""
    query = urlencode({"text": TEXT})
    spent: dict[tuple[str, int], list[float]] = {}
    sent: dict[str, int] = {}
    async with Visitor(whole.port, "", query) as one, Visitor(bare.port, "", query) as other:
        for round_ in range(WARM + rounds):
            for title, page in PAGES.items():
                for number, (server, visitor) in enumerate(((whole, one), (bare, other))):
                    before = visitor.bytes
                    milliseconds = await _opened(server, visitor, page)
                    if round_ >= WARM:
                        spent.setdefault((title, number), []).append(milliseconds)
                    if visitor is one:
                        sent[title] = visitor.bytes - before
        if troubles := [*one.troubles, *other.troubles]:
            raise RuntimeError(f"The pages failed while they were measured: {troubles}")
    return [
        {
            "page": title,
            "with_frame_ms": median(spent[title, 0]),
            "without_ms": median(spent[title, 1]),
            "bytes": sent[title],
        }
        for title in PAGES
    ]


async def _opened(server: Server, visitor: Visitor, page: str) -> float:
    """Milliseconds of a processor that the server spends on another page."""
    before = server.processor
    visitor.page, visitor.query = page, ""
    await visitor.run()
    await asyncio.sleep(REST)
    return 1000 * (server.processor - before)


def _seen(whole: Server, plain: Server, rounds: int) -> list[dict[str, object]]:
    """A row for each page: milliseconds from a click on Home to it, with the frame and as a plain page."""
    spent: dict[tuple[str, int], list[float]] = {}
    home = entry(HOME)
    query = urlencode({"text": TEXT})
    with (
        browsing() as browser,
        tab(browser, whole.address) as one,
        tab(browser, plain.address) as other,
    ):
        pair = [(0, one), (1, other)]  # each comes first in turn: the second finds a warm machine
        for _, opened in pair:
            opened.page.goto(f"/?{query}")
            opened.explorer()
        for round_ in range(1 + rounds):  # the first one reads the modules of the pages
            for page in (page for page in ENTRIES if page is not home):
                for number, opened in pair[:: 1 if round_ % 2 else -1]:
                    opened.page.bring_to_front()
                    _clicked(opened, home)
                    milliseconds = _clicked(opened, page)
                    if round_:
                        spent.setdefault((page.title, number), []).append(milliseconds)
        if troubles := [*one.troubles, *other.troubles]:
            raise RuntimeError(f"The pages failed while they were measured: {troubles}")
    return [
        {
            "page": page.title,
            "with_frame_ms": median(spent[page.title, 0]),
            "without_ms": median(spent[page.title, 1]),
        }
        for page in ENTRIES
        if page is not home
    ]


def _clicked(opened: Tab, page: PageEntry) -> float:
    """Milliseconds from a click on a page's link to the frame that shows the whole page; the way to its place
    is not measured."""
    link = link_to(opened.page, page)
    opened.rest()
    heading = page.heading or page.title
    seen = f"document.querySelector('h1')?.textContent.trim() === {heading!r} && {QUIET}"
    passed = opened.milliseconds(lambda: link.click(delay=PRESS), seen, "pointerup")
    opened.rest()
    return passed


def tabled(measured: Measured) -> str:
    """What was measured, as two tables."""
    rows = [
        (
            row["page"],
            f"{row['with_frame_ms']:.1f} ms",
            f"{row['without_ms']:.1f} ms",
            f"{row['with_frame_ms'] - row['without_ms']:.1f} ms",
            f"{row['bytes'] / 1000:,.0f} kB",
        )
        for row in measured["rows"]
    ]
    head = ("page", "with the frame", "without it", "the frame", "sent")
    seen = measured["seen"]
    shown = [_seen_row(row["page"], row["with_frame_ms"], row["without_ms"]) for row in seen]
    sums = (sum(row[name] for row in seen) / len(seen) for name in ("with_frame_ms", "without_ms"))
    shown.append(_seen_row("mean of the pages", *sums))
    names = ("page opened from Home", "with the frame", "without it", "the frame")
    return f"{table(head, rows)}\n\n{table(names, shown)}"


def _seen_row(page: str, whole: float, bare: float) -> tuple[str, ...]:
    return page, ms(whole), ms(bare), ms(whole - bare)
