"""What it costs the server to open another page, and how much of it the frame around the page takes.

Two servers at once, one of them without the frame's own work (`tests.bench.frameless`); a visitor without a
browser goes from page to page on both in turn. The processor's time is that of the whole server.
"""

import asyncio
import time
from pathlib import Path
from urllib.parse import urlencode

from tests.bench.cells import Measured, table
from tests.bench.quantiles import median
from tests.bench.server import Server, serving
from tests.bench.visitor import Visitor

PAGES = {
    "Home": "",
    "Attention, step by step": "attention",
    "All heads": "all_heads",
    "Layer norm": "layer_norm",
    "Prediction": "prediction",
}
TEXT = "The cat sat on the mat because it was tired"
WARM, ROUNDS = 2, 50
REST = 0.05  # seconds for what the server still does when the page is there


def measure(scratch: Path, short: bool) -> dict[str, object]:
    rounds = 5 if short else ROUNDS
    frameless = ("tests.bench.frameless",)
    with (
        serving(scratch / "server.log") as whole,
        serving(scratch / "frameless.log", program=frameless) as bare,
    ):
        return {"rows": asyncio.run(_switched(whole, bare, rounds))}


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
    before = _processor(server)
    visitor.page, visitor.query = page, ""
    await visitor.run()
    await asyncio.sleep(REST)
    return 1000 * (_processor(server) - before)


def _processor(server: Server) -> float:
    """Seconds of a processor that a process has used, all its threads together (Linux)."""
    return time.clock_gettime((~server.process.pid << 3) | 2)


def tabled(measured: Measured) -> str:
    """What was measured, as a table."""
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
    return table(("page", "with the frame", "without it", "the frame", "sent"), rows)
