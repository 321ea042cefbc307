"""The wheel, installed in an environment of its own (tests/deploy/installed.py), and used in a folder of
somebody else's whose files have the names of ours: its names, its command, and the app that it starts."""

import asyncio
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import numpy as np
import pytest
from playwright.sync_api import Page, expect
from safetensors.numpy import save

from model import load_model, load_trace
from model.system.extras import MissingExtraError
from tests.deploy.installed import Installed, install
from tests.server import HEALTHY, Server
from tests.visitor import Visitor
from viz.state.navigation import PAGES

pytestmark = [pytest.mark.wheel, pytest.mark.xdist_group("wheel")]
TEXT = "The cat saw the dog"
BROWSER = "xdg-open"  # what opens an address on Linux; here it writes the address down
# What a reader of the docs writes. It tells the weights, what was imported by then, and what is refused where
# the extra `hub` is missing.
SCRIPT = f"""
import json, sys
import attention_lens
early = sorted({{"torch", "numpy", "streamlit"}} & set(sys.modules))
trace = attention_lens.load_model("house-gpt").trace({TEXT!r})
weights = trace.find("decoder.0.self").weights(head=1).tolist()
refusals = []
for asked in (
    lambda: attention_lens.trace,
    lambda: attention_lens.show,
    lambda: attention_lens.load_model("./bloom"),
):
    try:
        asked()
    except (ImportError, ValueError) as refusal:
        refusals.append(f"{{type(refusal).__name__}}: {{refusal}}")
print(json.dumps([weights, trace.check(), early, "transformers" in sys.modules, refusals]))
"""
# Every module but the pages, which are scripts, and what starts when it is imported.
IMPORTS = """
import pkgutil, importlib, attention_lens
for name in dir(attention_lens):
    getattr(attention_lens, name)
for one in pkgutil.walk_packages(attention_lens.__path__, "attention_lens."):
    if one.name.split(".")[1] not in ("app", "pages") and not one.name.endswith("__main__"):
        print(importlib.import_module(one.name).__file__)
"""


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install(wheel, tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="module")
def opened(installed: Installed) -> Iterator[Server]:
    """The server of `attention_lens house-gpt TEXT`, with a browser that writes down what it is to open."""
    browser = installed.place / "bin" / BROWSER
    browser.parent.mkdir()
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {installed.place / "opened"}\n')
    browser.chmod(0o755)
    server = Server(
        installed.place / "log",
        ("attention_lens", "open", "house-gpt", TEXT),
        {
            "PATH": f"{browser.parent}:{os.environ['PATH']}",
            "STREAMLIT_SERVER_HEADLESS": "false",
            "PYTHONPATH": "",
        },
        python=installed.python,
        folder=installed.folder,
    )
    server.start()
    try:
        server.wait(HEALTHY)
        yield server
    finally:
        server.end()


@pytest.fixture(scope="module")
def server(opened: Server) -> str:
    return opened.address


def test_the_names_of_the_package_compute_what_the_tree_computes_and_name_a_missing_extra(
    installed: Installed,
) -> None:
    (installed.folder / "bloom").mkdir()
    (installed.folder / "bloom" / "config.json").write_text('{"model_type": "bloom"}')
    (installed.folder / "bloom" / "model.safetensors").write_bytes(save({}))
    ended = installed.run(installed.python, "-c", SCRIPT, check=True)
    weights, check, early, library, (name, widget, model) = json.loads(ended.stdout)
    trace = load_model("house-gpt").trace(TEXT)
    np.testing.assert_allclose(weights, trace.find("decoder.0.self").weights(head=1), atol=1e-6)
    assert check < 1e-4
    assert (early, library) == ([], False)
    assert name == f"MissingExtraError: {MissingExtraError('trace', 'transformers')}"
    assert widget == f"MissingExtraError: {MissingExtraError('show', 'anywidget')}"
    assert "the extra “notebook”" in widget
    assert model.startswith("ValueError")
    assert all("the extra “hub”" in refusal for refusal in (name, model)), (name, model)


def test_every_module_of_the_package_imports(installed: Installed) -> None:
    """With all packages, Hugging Face's library too; beside files that must not be imported."""
    environment = os.environ | {"PYTHONPATH": str(installed.packages)}
    ended = installed.run(sys.executable, "-c", IMPORTS, check=True, env=environment)
    files = ended.stdout.splitlines()
    assert len(files) > 400
    assert all(file.startswith(str(installed.packages)) for file in files)


def test_the_command_records_a_file_that_the_tree_reads(installed: Installed) -> None:
    (installed.folder / "text.txt").write_text(TEXT)
    line = [installed.command, "record", "stories", "text.txt", "-o", "trace.safetensors"]
    assert "Wrote trace.safetensors" in installed.run(*line, check=True).stderr
    assert load_trace(installed.folder / "trace.safetensors").text == TEXT


def test_the_command_refuses_with_a_sentence(installed: Installed) -> None:
    ended = installed.run(installed.command, "model.py")
    assert ended.returncode == 2
    assert re.match(r"attention-lens: .*'model\.py'\.", ended.stderr)


def test_nbconvert_knows_the_page_that_works_offline(installed: Installed) -> None:
    nbformat.write(nbformat.v4.new_notebook(), installed.folder / "cat.ipynb")
    line = ["-m", "nbconvert", "--to", "attention_lens_html", "cat.ipynb"]
    shared = os.environ | {"JUPYTER_PATH": f"{sys.prefix}/share/jupyter"}  # nbconvert's templates
    installed.run(installed.python, *line, check=True, env=shared)
    page = (installed.folder / "cat.html").read_text(encoding="utf-8")
    assert re.findall(r"""(?:src|href)=["']https?://[^"']+""", page) == []


def test_the_command_opens_its_view_in_the_browser(
    installed: Installed, opened: Server, open_page: Callable[..., Page], page: Page
) -> None:
    told = installed.place / "opened"
    while not told.exists() or not told.read_text():
        assert opened.process.poll() is None
        page.wait_for_timeout(50)
    assert told.read_text() == f"http://localhost:{opened.port}/?text=The+cat+saw+the+dog"
    open_page(told.read_text().partition(str(opened.port))[2])
    explorer = page.get_by_test_id("explorer")
    expect(explorer).to_have_attribute("data-ready", "true")
    expect(explorer).to_have_attribute("data-renderer", "plotly")
    explorer.get_by_test_id("how").click()
    expect(explorer.get_by_test_id("formula").locator(".katex-html")).to_be_visible()
    expect(page.get_by_role("textbox", name="Your sentence")).to_have_value(TEXT)


def test_every_page_of_the_wheel_opens(opened: Server) -> None:
    """Without the browser, whose own loop this thread has."""

    async def visit() -> dict[str, list[str]]:
        troubles = {}
        for entry in PAGES:
            async with Visitor(opened.port, entry.address, "") as visitor:
                troubles[entry.title] = visitor.troubles
        return troubles

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(asyncio.run, visit()).result() == {entry.title: [] for entry in PAGES}
