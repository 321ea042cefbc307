"""A trace file is opened by a link and by dropping it; whoever has only its name is asked for the file."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from model import load_model

TEXT = "The old house stood by the river"
SAID = "This is a recorded run: it has no weights."


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dropped") / "mine.safetensors"
    load_model("stories").trace("Tom saw a dog", record="full").save(path)
    return path


def drop(page: Page, file: Path) -> None:
    page.get_by_role("button", name="Other models").click()
    page.locator('input[type="file"]').set_input_files(file)


def test_a_file_opens_by_its_path_and_by_dropping_it(page: Page, file: Path) -> None:
    page.goto(f"/?model={file}")
    expect(page.get_by_text(SAID)).to_be_visible()
    expect(page.get_by_role("textbox", name="Your sentence")).to_have_value("Tom saw a dog")
    page.goto("/")
    expect(page.get_by_role("textbox", name="Your sentence")).to_be_enabled()
    drop(page, file)
    expect(page.get_by_text("the file mine.safetensors")).to_be_visible()
    expect(page.get_by_role("textbox", name="Your sentence")).to_have_value("Tom saw a dog")
    page.wait_for_url("**model=trace*")


@pytest.mark.walk
def test_what_one_visitor_dropped_another_does_not_open_by_its_name(
    page: Page, fresh_page: Callable[..., Page], file: Path
) -> None:
    second = fresh_page()
    page.goto("/")
    expect(page.get_by_role("textbox", name="Your sentence")).to_be_enabled()
    drop(page, file)
    expect(page.get_by_text("the file mine.safetensors")).to_be_visible()
    page.wait_for_url("**model=trace*")
    second.goto(page.url)
    expect(second.get_by_text("open the file again")).to_be_visible()
    expect(second.get_by_text(SAID)).to_have_count(0)
    second.locator('input[type="file"]').set_input_files(file)  # who has the file itself sees it
    expect(second.get_by_text("the file mine.safetensors")).to_be_visible()


def test_a_file_that_holds_no_trace_is_refused_where_it_was_dropped(
    page: Page, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.safetensors"
    wrong.write_bytes((2**40).to_bytes(8, "little") + b"{}")
    page.goto("/")
    expect(page.get_by_role("textbox", name="Your sentence")).to_be_enabled()
    drop(page, wrong)
    expect(page.get_by_text("does not hold a readable trace")).to_be_visible()
