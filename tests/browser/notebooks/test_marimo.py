"""The widget in a real marimo: its cells read the choice again whenever it changes, and set it."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from model import load_model
from tests.browser.controls import close_heads, pick_head
from tests.browser.notebooks.programs import Program, marimo

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
    expect(page.get_by_test_id("title")).to_contain_text("L0H5")
