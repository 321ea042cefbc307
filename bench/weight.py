"""What all heads of a model of 12 layers and 12 heads weigh: bytes and DOM nodes of our explorer, every
layer and head browsed, beside BertViz's pages of the same weights."""

import subprocess
import time
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
from playwright.sync_api import Browser, Page, Route
from playwright.sync_api import Error as PlaywrightError

from bench import gpt2_size
from bench.chromium import PATIENCE, Tab, browsing, tab
from bench.recording import OTHERS
from model import load_model
from tests.server import Server, serving

LENGTHS = (32, 128, 256)
LARGEST_OPENED = 100_000_000  # bytes of a page that is still tried in the browser
MODULES = Path(".venv-bench/js/node_modules")
SECONDS_TO_WRITE = 120  # BertViz's pages of one length
SCRIPTS = {  # what BertViz's pages fetch from a content delivery network, from npm's packages here
    "require.min.js": MODULES / "requirejs" / "require.js",
    "d3.min.js": MODULES / "d3" / "dist" / "d3.min.js",
    "jquery.min.js": MODULES / "jquery" / "dist" / "jquery.min.js",
}


def measure(scratch: Path, short: bool) -> dict[str, object]:
    folder = gpt2_size.save(scratch)
    model = load_model(str(folder), device="cpu")
    rows: list[dict[str, object]] = []
    lengths = LENGTHS[:1] if short else LENGTHS
    with serving(scratch / "server.log", scratch) as server, browsing() as browser:
        for tokens in lengths:
            rows.append({"tokens": tokens, "page": "ours"} | _ours(browser, server, tokens))
            print(rows[-1], flush=True)
            trace = model.trace(gpt2_size.text_of(tokens).strip())
            weights = [[a.weights(head) for head in range(a.heads)] for a in trace.attention]
            np.save(scratch / "weights.npy", np.array(weights, np.float32))
            for row in _bertviz(browser, scratch):
                rows.append({"tokens": tokens} | row)
                print(rows[-1], flush=True)
    return {"rows": rows}


def _ours(browser: Browser, server: Server, tokens: int) -> dict[str, object]:
    """Opens the page, then every layer and in each every head."""
    with tab(browser, server.address) as opened:
        text = gpt2_size.text_of(tokens).strip()
        parameters = {"text": text, "model": gpt2_size.NAME, "place": "decoder.0.self"}
        with opened.wire.counting():
            start = time.perf_counter()
            opened.page.goto(f"/?{urlencode(parameters)}")
            opened.explorer()
            seconds = time.perf_counter() - start
            opened.rest(1000)
        program, first = opened.wire.http, opened.wire.frames
        with opened.wire.counting():
            opened.page.get_by_test_id("head-picker").click()
            opened.rest(600)
        first += opened.wire.total
        nodes, layers = [opened.dom_nodes()], []
        for layer in range(1, gpt2_size.LAYERS):
            with opened.wire.counting():
                _open_layer(opened, layer)
                for head in range(gpt2_size.HEADS):
                    opened.page.get_by_test_id(f"head-{head}").click()
                    opened.explorer()
                opened.rest(600)
            nodes.append(opened.dom_nodes())
            layers.append(opened.wire.total)
        if opened.troubles:
            raise RuntimeError(f"The page failed: {opened.troubles}")
        return {
            "seconds": seconds,
            "program_bytes": program,
            "bytes": first + sum(layers),
            "bytes_a_layer": max(layers),
            "nodes": max(nodes),
        }


def _open_layer(opened: Tab, layer: int) -> None:
    opened.page.get_by_role("rowheader", name=f"L{layer}", exact=True).click()
    opened.wait_for(f"explorerRoot().dataset.layer === 'decoder.{layer}.self'")
    opened.explorer()


def _bertviz(browser: Browser, scratch: Path) -> list[dict[str, object]]:
    script = Path(__file__).with_name("bertviz_pages.py")
    command = [OTHERS, "-P", script, scratch / "weights.npy", scratch]
    subprocess.run(command, check=True, timeout=SECONDS_TO_WRITE)
    rows = []
    for view in ("model_view", "head_view"):
        file = scratch / f"{view}.html"
        size = file.stat().st_size
        row: dict[str, object] = {"page": f"BertViz {view}", "bytes": size}
        ready = size <= LARGEST_OPENED and all(path.is_file() for path in SCRIPTS.values())
        rows.append(row | (_opened(browser, file) if ready else {"seconds": None, "nodes": None}))
    return rows


def _opened(browser: Browser, file: Path) -> dict[str, object]:
    """Seconds until the page's picture is drawn, and its DOM nodes."""
    with tab(browser) as opened:
        opened.page.route("**/*.js", _from_npm)
        start = time.perf_counter()
        try:
            opened.page.goto(file.resolve().as_uri())
            _wait_for_picture(opened.page)
        except PlaywrightError as error:
            return {"seconds": None, "nodes": None, "said": str(error).splitlines()[0]}
        return {"seconds": time.perf_counter() - start, "nodes": opened.dom_nodes()}


def _wait_for_picture(page: Page) -> None:
    """BertViz draws in one go: once there is something in its picture, all of it is."""
    page.wait_for_function("document.querySelectorAll('#vis svg *').length > 100", timeout=PATIENCE)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")


def _from_npm(route: Route) -> None:
    route.fulfill(path=SCRIPTS[route.request.url.rsplit("/", 1)[-1]])
