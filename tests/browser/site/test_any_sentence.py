"""Any sentence on a page of the site, in Chromium and in Firefox: the reader's own browser runs the model,
from a disk as from a file server, and its numbers are PyTorch's."""

import json
import random
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
from playwright.sync_api import Browser, expect

from model import load_model
from model.analysis.run_comparison import is_word
from model.training.grammar import sentence
from tests import chromium, firefox
from tests.hostile.words import ORDINARY
from viz.notebook.run import Run
from viz.site import build
from viz.site.build import write_site
from viz.site.course import read_course
from viz.site.recording import recorded_run
from viz.state.link import View

pytestmark = pytest.mark.firefox

HERE = Path(__file__).parent
MODELS = {  # what is chosen in each: a sub-layer
    "stories": "decoder.1.self",
    "induction": "decoder.1.self",
    "translate-en-fr": "decoder.1.cross",
}
SIZES = {"desktop": (1440, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with one recorded sentence, of a model that does not run there, and three that do; one of them
    comes in more pieces than are on their way at once."""
    course = read_course()
    recorded = tuple(one for one in course.sentences if one.title == "A repeated name")
    made = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "_PIECE", 130_000)
        write_site(
            made,
            replace(
                course, sentences=recorded, pages=("explore", "walk"), in_browser=tuple(MODELS)
            ),
        )
    assert (made / "data" / "model-stories.6.js").is_file()
    return made


class Silent(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Writes no log."""


@pytest.fixture(scope="module")
def addresses(folder: Path) -> Iterator[dict[str, str]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=folder))
    thread = Thread(target=server.serve_forever)
    thread.start()
    served = f"http://127.0.0.1:{server.server_port}/index.html"
    yield {"disk": (folder / "index.html").as_uri(), "server": served}
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(("browser_name", "place", "size"), [
    *(("chrome", place, size) for place in ("disk", "server") for size in SIZES),
    ("firefox", "disk", "phone"),
    ("firefox", "server", "desktop"),
])  # fmt: skip
def test_a_reader_types_switches_chooses_and_plays(
    addresses: dict[str, str], browser_name: str, place: str, size: str, tmp_path: Path
) -> None:
    is_chrome = browser_name == "chrome"
    job = {
        "browser": browser_name,
        "executable": chromium.path() if is_chrome else firefox.path(),
        "flags": chromium.ARGUMENTS if is_chrome else [],
        "address": addresses[place],
        "width": SIZES[size][0],
        "height": SIZES[size][1],
        "offline": is_chrome and place == "disk",
        "patience": chromium.MILLISECONDS_TO_APPEAR,
    }
    file = tmp_path / "job.json"
    file.write_text(json.dumps(job))
    command = ["node", HERE / "acts.mjs", file]
    got = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert got.returncode == 0, got.stderr
    seen = json.loads(got.stdout)
    assert seen["failure"] is None
    assert seen["done"] == seen["of"] == 12
    assert seen["troubles"] == []
    assert seen["shown"] == list(SIZES[size])
    assert seen["sideways"] == 0


def sentences(name: str) -> list[str]:
    """Twenty, of two tokens and more."""
    dice = random.Random(name)
    if name == "translate-en-fr":
        drawn = np.random.default_rng(6)
        return [" ".join(sentence(drawn).english) for _ in range(20)]
    words = "abcdefgh1234" if name == "induction" else ORDINARY
    return [" ".join(dice.choices(words, k=count)) for count in range(2, 22)]


READ = """async ([texts, model]) => {
  const [box, choice] = ["textarea", ".models"].map((part) => document.querySelector(`.own ${part}`));
  const shown = () => new URLSearchParams(location.hash.slice(1));
  const frame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  const explorer = () => {
    const hosts = [...document.querySelectorAll(".picture *")].filter(({ shadowRoot }) => shadowRoot);
    return hosts.map(({ shadowRoot }) => shadowRoot.querySelector("[data-testid=explorer]")).find(Boolean);
  };
  const read = [];
  for (const text of texts) {
    [box.value, choice.value] = [text, model];
    box.form.requestSubmit();
    while (shown().get("text") !== text || shown().get("model") !== model) await frame();
    do await frame();
    while (explorer().dataset.ready !== "true"); // what stands beside the picture follows a frame later
    const rows = [...document.querySelectorAll(".next tr")];
    const { query, key, head } = explorer().dataset;
    read.push({
      rows: rows.map((row) => ["th", ".now:not(i)"].map((part) => row.querySelector(part).textContent)),
      loss: document.querySelector("p.outcome b").textContent,
      cell: [shown().get("place"), Number(head), Number(query), Number(key)],
      weight: /weight\\s*([\\d.]+)/.exec(explorer().querySelector("[data-testid=readout]").textContent)[1],
      check: explorer().querySelector("[data-testid=check]").textContent,
    });
  }
  return read;
}"""


def assert_printed(got: str, right: str) -> None:
    """The same number, whose last digit is certain to 1."""
    numbers = [float(text.removeprefix("<")) for text in (got, right)]
    assert len(got) == len(right)
    assert abs(numbers[0] - numbers[1]) < 1.5 * 10.0 ** -len(right.partition(".")[2])


@pytest.mark.parametrize("name", MODELS)
def test_the_numbers_on_the_page_are_pytorchs(browser: Browser, folder: Path, name: str) -> None:
    texts, model = sentences(name), load_model(name, device="cpu")
    page = chromium.new_page(browser, offline=True, reduced_motion="reduce")
    said = {"detail": "full", "text": texts[-1], "model": name, "place": MODELS[name]}
    page.goto(f"{(folder / 'index.html').as_uri()}#{urlencode(said)}")
    page.wait_for_selector("[data-testid=explorer][data-ready=true]")
    for text, got in zip(texts, page.evaluate(READ, [texts, name]), strict=True):
        trace = model.trace(text)
        right: Any = recorded_run(Run(trace, None, model), "", View(text, name), ())
        outcome = right["outcome"]["full"]
        for (token, share), row in zip(got["rows"], outcome["rows"], strict=True):
            assert token == row["token"]
            assert_printed(share, row["now"])
        assert_printed(got["loss"], outcome["loss"]["after"])
        place, head, query, key = got["cell"]
        assert place == MODELS[name]
        weights = trace.find(place).weights(head)
        last = max(at for at, one in enumerate(trace.tokens_of("decoder")) if is_word(one))
        assert (query, key) == (last, int(weights[last].argmax())), text
        decimals = len(got["weight"].partition(".")[2])
        assert_printed(got["weight"], f"{weights[query, key]:.{decimals}f}")
        assert "✓" in got["check"]
        assert "PyTorch's" in got["check"]
    page.close()


def test_a_link_opens_a_sentence_of_the_readers_own(browser: Browser, folder: Path) -> None:
    page = chromium.new_page(browser, offline=True)
    chosen = (
        "text=the+cat+saw+a+dog&model=stories&change=mask,decoder.1.self-2&place=decoder.0.self"
    )
    for file, head in (("index.html", 1), ("walk.html", 3)):
        page.goto(f"{(folder / file).as_uri()}#{chosen}&head={head}&query=2&key=1")
        shown = page.locator("[data-testid=explorer][data-ready=true]")
        for name, value in {"head": head, "query": 2, "key": 1}.items():
            expect(shown).to_have_attribute(f"data-{name}", str(value))
        expect(page.get_by_label("Sentence")).to_have_value("the cat saw a dog")
    page.close()


def test_a_model_is_fetched_when_a_sentence_is_begun(
    browser: Browser, addresses: dict[str, str]
) -> None:
    page = chromium.new_page(browser)
    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.url))
    page.goto(addresses["server"])
    page.wait_for_selector("[data-testid=explorer][data-ready=true]")
    assert not [one for one in asked if "/data/model-" in one]
    with page.expect_request("**/data/model-stories.6.js"):
        page.get_by_label("Sentence").focus()
    page.close()


COUNTS = """
const Own = WebAssembly.Instance;
window.products = 0;
WebAssembly.Instance = function (...given) {
  const { products } = new Own(...given).exports;
  return { exports: { products: (...numbers) => products(...numbers, (window.products += 1)) } };
};
"""


def test_a_switch_that_the_mouse_is_on_is_run_before_it_is_turned(
    browser: Browser, folder: Path
) -> None:
    page = chromium.new_page(browser, offline=True)
    page.add_init_script(COUNTS)
    page.goto(f"{(folder / 'index.html').as_uri()}#text=the+cat+saw+a+dog&model=stories")
    page.wait_for_selector("[data-testid=explorer][data-ready=true]")
    switch = page.get_by_test_id("switch-mask")
    shown = page.evaluate("products")
    switch.hover()
    ahead = page.evaluate("products")
    assert ahead > shown
    switch.click()
    expect(page.get_by_test_id("undo")).to_be_visible()
    assert page.evaluate("products") == ahead
    page.close()
