"""The widget in a real JupyterLab: drawn, read and set from Python, saved, opened again without the kernel
that made it, and as a page without a network. Neither page, server nor kernel reach another machine."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Locator, Page, expect

from model import load_model
from tests.accessibility import look
from tests.browser.controls import close_heads, pick_head
from tests.browser.notebooks import lab
from tests.browser.notebooks.programs import Program, jupyterlab, surroundings, way_out
from viz import figures
from viz.notebook.offline import FIGURE, offline_page

pytestmark = pytest.mark.process

TEXT = "The cat sat on the mat"
SHOW = f"""from model import load_model
from viz.notebook import show
picture = show(load_model("house-gpt").trace({TEXT!r}), head=1)
picture"""
READ = 'print(picture.place, picture.head, picture.query, picture.key, f"{picture.weight:.6f}")'
SET = 'picture.place, picture.head, picture.query, picture.key = "decoder.1.self", 5, 3, 2'
NOTEBOOK = "cat.ipynb"
THREE = (
    f"""from model import Intervention, load_model
from viz.notebook import compare, show
model = load_model("house-gpt")
trace = model.trace({TEXT!r})
show(trace, head=1)""",
    "show(trace, head=2)",
    "compare(trace, model.trace(trace.text, intervention=Intervention(scale=1.0)), head=3)",
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    folder = tmp_path_factory.mktemp("jupyterlab") / "notebooks"
    folder.mkdir()
    with jupyterlab(folder, theme="JupyterLab Dark") as started:
        yield started
    assert not started.way_out.exists(), started.way_out.read_text()


def explorer(page: Page, **shown: object) -> Locator:
    """The widget, once it has drawn what is named."""
    root = page.get_by_test_id("explorer")
    expect(root).to_have_count(1)
    for name, value in shown.items():
        expect(root).to_have_attribute(f"data-{name}", str(value))
    expect(root).to_have_attribute("data-ready", "true")
    return root


def words(root: Locator) -> str:
    """What the picture says of the chosen cell."""
    return root.locator(".readout").get_by_role("status").inner_text()


def chosen_and_read(page: Page) -> None:
    """A head is chosen in the picture, and Python knows it and the weight there."""
    lab.run(page, 0)
    drawn = explorer(page, head=1)
    assert [one for one in look(page, ("color-contrast",), within=lab.WIDGET).findings] == []
    expect(drawn).to_be_visible()
    expect(lab.cell(page, 0).locator("img")).to_be_hidden()  # what is there without the widget
    pick_head(page, 3)
    close_heads(page)
    explorer(page, head=3)
    trace = load_model("house-gpt").trace(TEXT)
    query = len(trace.tokens) - 1
    key = int(trace.attention[0].weights(1)[query].argmax())
    weight = trace.attention[0].weights(3)[query, key]
    lab.run_until(page, 1, f"decoder.0.self 3 {query} {key} {weight:.6f}")


def set_and_saved(page: Page) -> str:
    """Python moves the picture, and the notebook is saved; returns what the picture says then."""
    lab.run(page, 2)
    drawn = explorer(page, head=5, query=3, key=2)
    expect(drawn.get_by_test_id("readout")).to_contain_text("L1H5")
    lab.save_with_widgets(page)
    return words(drawn)


def opened_again(page: Page, said: str) -> None:
    """The saved picture is there, and the kernel that was started for it knows nothing of it."""
    lab.wait_for_saved_widgets(page)
    assert words(explorer(page, head=5, query=3, key=2)) == said
    lab.wait_for_kernel(page)
    lab.run(page, 1)
    expect(lab.cell(page, 1)).to_contain_text(
        "NameError"
    )  # the kernel's answer may come before its output


def alive_without_network(page: Page) -> None:
    """Heads of all layers can be chosen in the page that was made of the notebook."""
    explorer(page, head=5, query=3, key=2)
    pick_head(page, 2)
    expect(explorer(page, head=2).get_by_test_id("readout")).to_contain_text("L1H2")
    pick_head(page, 4, layer=0)
    expect(explorer(page, head=4).get_by_test_id("readout")).to_contain_text("L0H4")


@pytest.mark.xdist_group("notebooks")
def test_a_notebook_is_drawn_read_set_saved_and_opened_without_its_kernel_and_without_a_network(
    program: Program, visit: Callable[..., Page], tmp_path: Path
) -> None:
    notebook, page_of_it = program.folder / NOTEBOOK, tmp_path / "cat.html"
    lab.write(notebook, SHOW, READ, SET)
    address = f"{program.server.address}/lab/tree/{NOTEBOOK}?reset&token={program.token}"
    page = visit(address)
    lab.wait_for_kernel(page)
    chosen_and_read(page)
    said = set_and_saved(page)
    lab.end_kernels(page, program.server.address, program.token)
    page.context.close()
    opened_again(visit(address), said)
    page_of_it.write_text(offline_page(notebook), encoding="utf-8")
    alive_without_network(visit(page_of_it.as_uri(), offline=True))


def drawn_in_their_cells(page: Page) -> None:
    """Each of the three cells has its own picture."""
    for number in range(len(THREE)):
        shown = lab.cell(page, number).get_by_test_id("explorer")
        expect(shown).to_have_count(1)
        expect(shown).to_have_attribute("data-head", str(number + 1))
        expect(shown).to_have_attribute("data-ready", "true")


@pytest.mark.xdist_group("notebooks")
def test_three_pictures_are_drawn_together_one_by_one_again_and_in_a_page_without_a_network(
    program: Program, visit: Callable[..., Page], tmp_path: Path
) -> None:
    notebook, page_of_it = program.folder / "three.ipynb", tmp_path / "three.html"
    lab.write(notebook, *THREE)
    page = visit(f"{program.server.address}/lab/tree/{notebook.name}?reset&token={program.token}")
    lab.wait_for_kernel(page)
    for number in range(len(THREE)):
        lab.run(page, number)
    drawn_in_their_cells(page)
    lab.run_all(page)
    drawn_in_their_cells(page)
    lab.run(page, 0)
    drawn_in_their_cells(page)
    lab.save_with_widgets(page)
    page_of_it.write_text(offline_page(notebook), encoding="utf-8")
    saved = visit(page_of_it.as_uri(), offline=True).get_by_test_id("explorer")
    for number in range(len(THREE)):
        expect(saved.nth(number)).to_have_attribute("data-head", str(number + 1))
        expect(saved.nth(number)).to_have_attribute("data-ready", "true")
    lab.end_kernels(page, program.server.address, program.token)
    page.context.close()
    bare = nbformat.read(notebook, as_version=4)
    del bare.metadata["widgets"]  # as JupyterLab saves it by itself
    nbformat.write(bare, notebook)
    again = visit(f"{program.server.address}/lab/tree/{notebook.name}?reset&token={program.token}")
    for number in range(len(THREE)):
        still = lab.cell(again, number).locator("img")
        expect(still).to_be_visible()
        assert f"H{number + 1}" in str(still.get_attribute("alt"))


def test_figures_of_plotly_are_drawn_in_a_page_without_a_network(
    visit: Callable[..., Page], tmp_path: Path
) -> None:
    trace, file, page_of_it = (
        load_model("house-gpt").trace(TEXT),
        tmp_path / "f.ipynb",
        tmp_path / "f.html",
    )
    cells = []
    for head in (1, 2):
        figure = json.loads(figures.weights(trace, "decoder.1.self", head).to_json())
        output = nbformat.v4.new_output("display_data", data={FIGURE: figure})
        cells.append(nbformat.v4.new_code_cell("figure", outputs=[output]))
    nbformat.write(nbformat.v4.new_notebook(cells=cells), file)
    page_of_it.write_text(offline_page(file), encoding="utf-8")
    drawn = visit(page_of_it.as_uri(), offline=True).locator(".js-plotly-plot")
    expect(drawn).to_have_count(2)
    for number, head in enumerate((1, 2)):
        cells_of_it = drawn.nth(number).evaluate("plot => Array.from(plot._fullData.at(-1).z[2])")
        assert cells_of_it[:3] == pytest.approx(trace.find("decoder.1.self").weights(head)[2, :3])
        expect(drawn.nth(number).locator(".heatmaplayer image").first).to_be_visible()


def test_a_program_that_tries_to_reach_another_machine_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "notebooks"
    reach = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=1)"
    tried = subprocess.run(
        [sys.executable, "-c", reach],
        env=os.environ | surroundings(folder),
        capture_output=True,
        text=True,
    )
    assert "192.0.2.1" in tried.stderr
    assert "192.0.2.1" in way_out(folder).read_text()
