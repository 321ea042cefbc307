"""The widget in a real marimo: its cells read the choice again whenever it changes, and set it; a page that
marimo saved shows it without a kernel."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from model import load_model
from model.system.settings import environment_with
from tests.browser.controls import close_heads, pick_head
from tests.browser.notebooks.programs import Program, marimo
from tests.server import REPOSITORY

pytestmark = pytest.mark.process

TEXT = "The cat sat on the mat"
NOTEBOOK = f"""import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo

    from model import load_model
    from viz.notebook import show

    return load_model, mo, show


@app.cell
def _(load_model, mo, show):
    picture = mo.ui.anywidget(show(load_model("house-gpt").trace({TEXT!r}), head=1))
    picture
    return (picture,)


@app.cell
def _(picture):
    print("It shows", picture.place, picture.head, picture.query, picture.key, f"{{picture.weight:.6f}}")
    return


@app.cell
def _(mo, picture):
    def move(_):
        picture.head = 5

    mo.ui.button(label="Head 5", on_click=move)
    return
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    notebook = tmp_path_factory.mktemp("marimo") / "notebooks" / "cat.py"
    notebook.parent.mkdir()
    notebook.write_text(NOTEBOOK, encoding="utf-8")
    with marimo(notebook) as started:
        yield started
    assert not started.way_out.exists(), started.way_out.read_text()


@pytest.mark.xdist_group("notebooks")
def test_the_picture_is_drawn_and_its_choice_goes_both_ways(
    program: Program, visit: Callable[..., Page]
) -> None:
    page = visit(f"{program.server.address}/?access_token={program.token}")
    drawn = page.get_by_test_id("explorer").and_(page.locator("[data-ready=true]"))
    expect(drawn).to_have_attribute("data-head", "1")
    pick_head(page, 3)
    close_heads(page)
    trace = load_model("house-gpt").trace(TEXT)
    query = len(trace.tokens) - 1
    key = int(trace.attention[0].weights(1)[query].argmax())
    weight = trace.attention[0].weights(3)[query, key]
    expect(
        page.get_by_text(f"It shows decoder.0.self 3 {query} {key} {weight:.6f}")
    ).to_be_visible()
    page.get_by_role("button", name="Head 5", exact=True).click()
    expect(drawn).to_have_attribute("data-head", "5")
    expect(page.get_by_test_id("readout")).to_contain_text("L0H5")


@pytest.mark.xdist_group("notebooks")
def test_a_page_that_marimo_saved_switches_heads_without_a_kernel(
    visit: Callable[..., Page], tmp_path: Path
) -> None:
    notebook, saved = tmp_path / "cat.py", tmp_path / "cat.html"
    notebook.write_text(NOTEBOOK, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "marimo",
        "-q",
        "export",
        "html",
        str(notebook),
        "-o",
        str(saved),
    ]
    subprocess.run(
        command, cwd=REPOSITORY, env=environment_with(PYTHONPATH=str(REPOSITORY)), check=True
    )
    marimo = re.search(r"https://[^\"' ]+?/dist/", saved.read_text(encoding="utf-8"))
    found = find_spec("marimo")
    assert marimo
    assert found
    assert found.origin
    # The page fetches marimo itself, which lies on this machine too.
    page = visit(saved.as_uri(), lent=(marimo.group(), Path(found.origin).parent / "_static"))
    drawn = page.get_by_test_id("explorer").and_(page.locator("[data-ready=true]"))
    expect(drawn).to_have_attribute("data-head", "1")
    pick_head(page, 2, layer=1)
    expect(page.get_by_test_id("readout")).to_contain_text("L1H2")
