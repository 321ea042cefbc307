"""The first picture with a real language model that is on disk, and what it takes of memory.

Each time a server of its own: started as `make run` does, left until it is idle, then opened for the first
time: by an address, or on Home, which offers the model.
"""

import time
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Locator

from bench.chromium import Tab, browsing, tab
from bench.clicks import PAUSE, PRESS
from bench.machine import load
from bench.quantiles import median
from model.download.entries import fetched
from model.loading.registry import models
from model.system.settings import REAL_MODEL
from tests.server import Server, serving

MODELS = ("house-gpt", REAL_MODEL)
TEXTS = ("The capital of France is", "The capital of Italy is")
SEEN = "explorerRoot().dataset.renderer"  # the canvas has its cells; Plotly draws them again
EXPECTED = "Paris"  # what this model, and no other here, says next
FETCHING = {"ATTENTION_FETCH": REAL_MODEL}
TIMES = 3
IDLE = 0.05  # seconds of a processor in one second


def measure(scratch: Path, short: bool) -> dict[str, object]:
    fetched(models[REAL_MODEL], lambda sentence, share: None)
    rows = []
    for name in MODELS:
        before = load()
        found = [_one(scratch, name) for _ in range(1 if short else TIMES)]
        row: dict[str, object] = {"model": name, "load": round(before, 2)}
        row |= {part: median([one[part] for one in found]) for part in found[0]}
        rows.append(row)
        print(row, flush=True)
    return {
        "rows": rows,
        "offer_s": median([_offered(scratch) for _ in range(1 if short else TIMES)]),
    }


def _one(scratch: Path, name: str) -> dict[str, float]:
    """Seconds from the address to the picture of a model and until all is drawn, for two sentences, and
    megabytes of the server."""
    with serving(scratch / "server.log", more=FETCHING) as server, browsing() as browser:
        _wait_until_idle(server)
        before, seen, drawn = server.memory, [], []
        with tab(browser, server.address) as opened:
            for text in TEXTS:
                start = time.perf_counter()
                opened.page.goto(f"/?{urlencode({'model': name, 'text': text})}")
                opened.wait_for(SEEN, pause=PAUSE)
                seen.append(time.perf_counter() - start)
                opened.explorer()
                drawn.append(time.perf_counter() - start)
        return {
            "first_s": seen[0],
            "first_drawn_s": drawn[0],
            "second_s": seen[1],
            "second_drawn_s": drawn[1],
            "before_mb": before,
            "after_mb": server.memory,
            "peak_mb": server.peak,
        }


def _offered(scratch: Path) -> float:
    """Seconds from the click on what Home offers to Home's picture of it, at the first visit of all."""
    with serving(scratch / "server.log", more=FETCHING) as server, browsing() as browser:
        _wait_until_idle(server)
        with tab(browser, server.address) as opened:
            opened.page.goto(f"/?{urlencode({'text': TEXTS[0]})}")
            offer = opened.page.locator(".st-key-real-model button")
            offer.wait_for()
            opened.rest(1500)
            return _until_said(opened, offer)


def _until_said(opened: Tab, offer: Locator) -> float:
    said = (
        "[...document.querySelectorAll('*')]"
        f".some((one) => one.shadowRoot?.querySelector('.said')?.textContent.includes('{EXPECTED}'))"
    )
    return opened.milliseconds(partial(offer.click, delay=PRESS), said, pause=PAUSE) / 1000


def _wait_until_idle(server: Server) -> None:
    """All pages, and the library that a real model needs, have been read."""
    spent = server.processor
    while True:
        time.sleep(1)
        before, spent = spent, server.processor
        if spent - before < IDLE:
            return
