"""A shipped model in a real Chromium, in a page from the disk, without a server and without a network."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from model import Intervention, load_model
from model.analysis.run_comparison import rounding
from tests import chromium
from tests.server import REPOSITORY
from viz.explorer import bundle
from viz.site.model.parts import script, vocabulary_script

HERE = Path(__file__).parent / "site_model"
SENTENCE = "Tom saw a dog and the dog saw Tom"
NAME = "stories"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page and its scripts."""
    made = tmp_path_factory.mktemp("site")
    command = [
        REPOSITORY / "node_modules/.bin/esbuild",
        HERE / "page.js",
        "--bundle",
        "--format=iife",
    ]
    subprocess.run([*command, f"--outfile={made / 'page.js'}", "--log-level=warning"], check=True)
    skeleton = f"{bundle.skeleton()}<style>{bundle.style()}</style>"
    page = (HERE / "page.html").read_text(encoding="utf-8").replace("SKELETON", skeleton)
    files = {
        "page.html": page,
        "vocabulary.js": vocabulary_script(),
        "model.js": script(load_model(NAME)),
    }
    for name, text in files.items():
        (made / name).write_text(text, encoding="utf-8")
    return made


@pytest.fixture
def page(browser: Browser, folder: Path) -> Iterator[Page]:
    page = chromium.new_page(browser)
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", lambda said: said.type == "error" and troubles.append(said.text))
    page.on("request", lambda asked: asked.url.startswith("file:") or troubles.append(asked.url))
    page.context.set_offline(True)
    page.goto((folder / "page.html").as_uri())
    yield page
    assert troubles == []
    page.close()


def logits(page: Page, text: str, changes: dict[str, object]) -> np.ndarray:
    asked = "([text, changes]) => Array.from(window.model.run(text, changes).logits)"
    return np.asarray(page.evaluate(asked, [text, changes]), np.float32)


def test_any_sentence_is_run_and_drawn_without_a_server(page: Page) -> None:
    model = load_model(NAME, device="cpu")
    check = page.locator(".check")
    expect(check).to_contain_text("✓")
    page.locator("#sentence").fill(SENTENCE)
    tokens = [token.text for token in model.tokens(SENTENCE)]
    expect(page.locator("#refusal")).to_be_empty()
    message = "(text) => window.model.messageOf(text, {}, 1).queries.full.length"
    assert page.evaluate(message, SENTENCE) == len(tokens)
    page.locator("#layer").select_option(index=1)
    expect(check).to_contain_text("L1H0")
    page.locator("#mask").uncheck()
    page.locator("#scaling").uncheck()
    page.locator("#positions").uncheck()
    expect(check).to_contain_text("✓")
    page.locator("#sentence").fill("")
    expect(page.locator("#refusal")).to_have_text("There is no text yet. Type a sentence.")


def test_chromium_computes_pytorchs_numbers(page: Page) -> None:
    model = load_model(NAME, device="cpu")
    for changes, intervention in (
        ({}, Intervention()),
        (
            {"mask": "none", "scale": 1, "positions": False},
            Intervention(1.0, "none", positions=False),
        ),
    ):
        trace = model.trace(SENTENCE, intervention=intervention)
        assert trace.logits is not None
        gap = float(np.abs(logits(page, SENTENCE, changes) - trace.logits.ravel()).max())
        assert 0 < gap <= rounding(trace)
    assert 0 < page.evaluate("window.model.gapToPyTorch()") <= rounding(model.trace(SENTENCE))
