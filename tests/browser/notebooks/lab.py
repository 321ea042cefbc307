"""A notebook as its reader has it in JupyterLab: cells that are run, read and saved."""

import re
import time
from pathlib import Path

import nbformat
from playwright.sync_api import Locator, Page, expect

from tests import chromium

KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
TIMES_LOADED = 5
WIDGET = ".jp-OutputArea-output"
SAVE_STATE = "Save Widget State Automatically"


def write(file: Path, *cells: str) -> None:
    """A new notebook of code cells."""
    code = [nbformat.v4.new_code_cell(cell) for cell in cells]
    nbformat.write(nbformat.v4.new_notebook(cells=code, metadata={"kernelspec": KERNEL}), file)


def wait_for_kernel(page: Page) -> None:
    """Until the notebook's kernel runs and waits for a cell."""
    page.get_by_text(re.compile(r"^Python 3 .*\| Idle$")).wait_for()


def cell(page: Page, number: int) -> Locator:
    return page.locator(".jp-Notebook .jp-CodeCell").nth(number)


def run(page: Page, number: int) -> str:
    """Runs a cell to its end; returns what it says below itself."""
    prompt = cell(page, number).locator(".jp-InputArea-prompt")
    before = prompt.inner_text()
    cell(page, number).locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    expect(prompt).not_to_have_text(before)
    expect(prompt).to_have_text(re.compile(r"\[\d+\]"))
    return "\n".join(cell(page, number).locator(".jp-OutputArea-output").all_inner_texts())


def run_all(page: Page) -> None:
    """Runs all cells at once, to their ends."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.locator(".lm-Menu-item", has_text=re.compile("^Run All Cells")).click()
    for number in range(page.locator(".jp-Notebook .jp-CodeCell").count()):
        prompt = cell(page, number).locator(".jp-InputArea-prompt")
        expect(prompt).to_have_text(re.compile(r"\[\d+\]"))


def run_until(page: Page, number: int, said: str) -> None:
    """Runs a cell again until it says so: what is chosen reaches Python a moment later."""
    deadline = time.monotonic() + chromium.MILLISECONDS_TO_APPEAR / 1000
    while (last := run(page, number).strip()) != said:
        assert time.monotonic() < deadline, f"It said {last!r} last, not {said!r}."


def save_with_widgets(page: Page) -> None:
    """Saves the notebook with the states of its widgets, as JupyterLab does where its reader wants that."""
    settings = page.get_by_role("menuitem", name="Settings", exact=True)
    choice = page.locator(".lm-Menu-item", has_text=SAVE_STATE)
    is_chosen = False
    while True:  # an open menu does not hear of the choice
        settings.click()
        choice.wait_for()
        is_on = choice.and_(page.locator(".lm-mod-toggled")).count() == 1
        if is_on or is_chosen:
            page.keyboard.press("Escape")
        else:
            choice.click()
            is_chosen = True
        expect(choice).to_have_count(0)
        if is_on:
            break
    cell(page, 0).locator(".cm-content").click()
    with page.expect_response(
        lambda answer: answer.request.method == "PUT" and "/api/contents/" in answer.url
    ):
        page.keyboard.press("Control+s")


def wait_for_saved_widgets(page: Page) -> None:
    """Until the first cell shows its saved widget. JupyterLab's manager of widgets calls itself restored as
    soon as the kernel is connected. Where that is before it has read the notebook, the cell says that it has
    no such widget, and keeps to that: its reader loads the page again, and so does this."""
    widget = cell(page, 0).get_by_test_id("explorer")
    missing = cell(page, 0).get_by_text("Error displaying widget")
    for _ in range(TIMES_LOADED):
        expect(widget.or_(missing).first).to_be_visible()
        if not missing.count():
            return
        page.reload()
    expect(widget).to_have_count(1)


def end_kernels(page: Page, address: str, token: str) -> None:
    """Ends all kernels of a server."""
    heads = {"Authorization": f"token {token}"}
    for session in page.request.get(f"{address}/api/sessions", headers=heads).json():
        ended = page.request.delete(f"{address}/api/sessions/{session['id']}", headers=heads)
        assert ended.status == 204
