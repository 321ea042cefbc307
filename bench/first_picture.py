"""From the start of the server to the first picture, beside a plain page of Streamlit with one heatmap.

In turn: a server is started, and a browser that has been nowhere opens its page as soon as the address
answers. The app's cells are first drawn by its canvas, and again by Plotly once that is read.
"""

import time
from pathlib import Path

from playwright.sync_api import Browser

from bench.cells import Measured, seconds, table
from bench.chromium import browsing, tab
from bench.quantiles import median
from bench.real_model import SEEN
from tests.server import HEALTHY, serving

TIMES = 7
PAUSE = 10  # milliseconds between two looks
# What is started, and what is seen in it: cells.
DRAWN = "explorerRoot().dataset.painted === 'true'"  # by Plotly
PAGES = {
    "the app": (("viz.server",), SEEN, DRAWN),
    "a plain page": (
        ("streamlit", "run", str(Path(__file__).with_name("plain_page.py"))),
        *["document.querySelector('.js-plotly-plot .heatmaplayer image')"] * 2,
    ),
}


def measure(scratch: Path, short: bool) -> dict[str, object]:
    found: dict[str, list[dict[str, float]]] = {name: [] for name in PAGES}
    with browsing() as browser:
        for round_ in range(1 + (2 if short else TIMES)):
            for name in list(PAGES)[:: 1 if round_ % 2 else -1]:
                one = _started(browser, scratch, name)
                if round_:  # the first one reads from the disk
                    found[name].append(one)
                    print(name, one, flush=True)
    rows = [
        {"page": name, "times": len(all_)}
        | {part: median([one[part] for one in all_]) for part in all_[0]}
        | {
            "least_s": min(one["picture_s"] for one in all_),
            "most_s": max(one["picture_s"] for one in all_),
        }
        for name, all_ in found.items()
    ]
    return {"rows": rows}


def _started(browser: Browser, scratch: Path, name: str) -> dict[str, float]:
    """Seconds from the start of a server until its address answers and its picture is seen, and of its
    processor until then."""
    program, picture, whole = PAGES[name]
    with tab(browser) as opened:
        start = time.perf_counter()
        with serving(scratch / "server.log", program=program, until=HEALTHY) as server:
            found = {"answers_s": time.perf_counter() - start}
            opened.page.goto(server.address, wait_until="commit")
            for part, seen in (("picture_s", picture), ("drawn_s", whole)):
                opened.wait_for(seen, pause=PAUSE)
                found[part] = time.perf_counter() - start
            return found | {"processor_s": server.processor}


def tabled(measured: Measured) -> str:
    head = (
        "",
        "starts",
        "address answers",
        "first picture",
        "least",
        "most",
        "by Plotly",
        "processor",
    )
    parts = ("answers_s", "picture_s", "least_s", "most_s", "drawn_s", "processor_s")
    rows = [
        (row["page"], row["times"], *(seconds(row[part]) for part in parts))
        for row in measured["rows"]
    ]
    app, plain = (row["picture_s"] for row in measured["rows"])
    return f"{table(head, rows)}\n\nThe app's takes {app / plain:.2f} times the plain page's."
