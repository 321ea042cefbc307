"""`python -m tools.jupyterlab_picture` (`make screens`) takes docs/screens/jupyterlab.png: the widget in a
real JupyterLab, from the package as its wheel has it."""

import os
import tempfile
from pathlib import Path
from zipfile import ZipFile

from playwright.sync_api import Browser, expect

from bench.chromium import browsing
from deploy.wheel import build_wheel
from model.system.files import write_whole
from tests import chromium
from tests.browser.notebooks import lab
from tests.browser.notebooks.programs import Program, jupyterlab
from tools.screens import SCREENS, SETTLED, compact

PICTURE = SCREENS / "jupyterlab.png"
LARGEST = 250_000  # bytes
NOTEBOOK = "cat.ipynb"
SHOW = """from attention_lens import load_model, show

trace = load_model("house-gpt").trace("The cat sat on the mat because it was tired")
picture = show(trace, place="decoder.1.self", head=5)
picture"""
READ = "picture.place, picture.head, picture.query, picture.key, picture.weight"


def take(program: Program, browser: Browser) -> bytes:
    page = browser.new_page(viewport={"width": 1280, "height": 1100}, color_scheme="light")
    page.set_default_timeout(chromium.MILLISECONDS_TO_APPEAR)
    page.goto(f"{program.server.address}/lab/tree/{NOTEBOOK}?reset&token={program.token}")
    lab.wait_for_kernel(page)
    page.keyboard.press("Control+b")  # the notebook without the list of files
    for number in (0, 1):
        lab.run(page, number)
    expect(page.get_by_test_id("explorer")).to_have_attribute("data-ready", "true")
    page.get_by_role("button", name="No", exact=True).click()  # JupyterLab offers its news
    lab.cell(page, 0).evaluate("cell => cell.scrollIntoView()")
    page.wait_for_timeout(SETTLED)
    return compact(page.screenshot(animations="disabled"))


def main() -> None:
    expect.set_options(timeout=chromium.MILLISECONDS_TO_APPEAR)
    with tempfile.TemporaryDirectory() as scratch:
        packages, folder = Path(scratch) / "packages", Path(scratch) / "notebooks"
        for place in (packages, folder):
            place.mkdir()
        with ZipFile(packages / build_wheel(str(packages))) as wheel:
            wheel.extractall(packages)
        os.environ["PYTHONPATH"] = str(packages)
        lab.write(folder / NOTEBOOK, SHOW, READ)
        with jupyterlab(folder) as program, browsing() as browser:
            picture = take(program, browser)
    if len(picture) > LARGEST:
        raise SystemExit(f"{PICTURE.name} would have {len(picture):,} bytes, over {LARGEST:,}.")
    write_whole(PICTURE, picture)
    print(f"{PICTURE.name} {len(picture) // 1000} kB")


if __name__ == "__main__":
    main()
