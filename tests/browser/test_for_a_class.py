"""Teach, in a real browser: the sheets as one file, and a class that follows at the network's address."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import wait_until_settled
from tests.browser.controls import download
from tests.viz.command.test_class import class_at, links_of, reachable

SHEET = '<section class="sheet">'  # of one pupil


def pupils(page: Page, number: int) -> None:
    """Sets how many there are."""
    page.get_by_role("button", name="Class").click()
    box = page.get_by_label("Pupils")
    box.fill(str(number))
    box.press("Enter")
    page.keyboard.press("Escape")


def test_exercises_are_looked_at_and_saved(open_page: Callable[..., Page]) -> None:
    page = open_page("/for_a_class")
    expect(page.get_by_text("85–90 min")).to_be_visible()
    page.get_by_role("radio", name="Exercises").click()
    sheet = page.locator(".st-key-class-exercise-3")
    expect(sheet).to_contain_text("turn the scores into weights with the softmax")
    expect(sheet).not_to_contain_text("Exponentials")
    page.get_by_role("radio", name="Answers").click()
    expect(sheet).to_contain_text("Exponentials")
    pupils(page, 3)
    expect(page.get_by_text("Sheet 1 of 3")).to_be_visible()
    wait_until_settled(page)
    text = sheets(page)
    assert text.count(SHEET) == 3
    assert "Exponentials" not in text
    assert "127.0.0.1" not in text


def test_a_press_while_the_page_runs_saves_the_sheets(open_page: Callable[..., Page]) -> None:
    page = open_page("/for_a_class", show="Exercises")
    asked_for = {30}
    for number in range(2, 6):
        asked_for.add(number)
        pupils(page, number)
        assert sheets(page).count(SHEET) in asked_for


def sheets(page: Page) -> str:
    """The file of the pupils' sheets."""
    saved = download(page, page.get_by_role("button", name="All sheets"))
    return saved.path().read_text("utf-8")


@pytest.mark.process
def test_a_class_by_one_command_is_led_by_its_key_and_followed_by_its_link(
    browser: Browser, tmp_path: Path
) -> None:
    address, log = reachable(), tmp_path / "log"
    with socket.socket() as probe:
        probe.bind((address, 0))
        port = int(probe.getsockname()[1])
    with class_at(address, port, log), browser.new_context() as one, browser.new_context() as other:
        joined, led = links_of(log)
        lecturer, pupil = one.new_page(), other.new_page()
        lecturer.goto(led)
        expect(lecturer.get_by_test_id("stCode").first).to_contain_text(joined)
        code = lecturer.locator(".scanned img")
        expect(code).to_be_visible()
        assert code.evaluate("image => image.naturalWidth") > 150
        assert "lead=" not in lecturer.url
        pupil.goto(joined)
        expect(
            pupil.get_by_test_id("stToggle").or_(pupil.get_by_role("switch")).first
        ).to_be_visible()
        lecturer.get_by_role("button", name="Show this page").click()
        pupil.get_by_role("link", name="Go there: Teach").click()
        expect(pupil.get_by_role("button", name="Begin a class")).to_be_visible()


@pytest.mark.walk
def test_a_pupil_opens_what_the_lecturer_shows_and_follows(
    open_page: Callable[..., Page], fresh_page: Callable[..., Page]
) -> None:
    page = open_page("/for_a_class", show="Share", text="the old man sat", head="2", mask="none")
    page.get_by_role("button", name="Begin a class").click()
    link = page.get_by_test_id("stCode").first
    expect(link).to_contain_text("?class=")
    expect(page.locator(".scanned")).to_have_count(0)  # only this computer could open it
    pupil = open_page("/", on=fresh_page(), **{"class": link.inner_text().strip()[-12:]})
    expect(pupil.get_by_role("textbox", name="Your sentence")).to_have_value("the old man sat")
    expect(pupil.get_by_role("switch", name="Hide the future")).not_to_be_checked()
    page.reload()  # the class goes on
    expect(page.get_by_text("Your class sees: Explore.")).to_be_visible()
    page.get_by_role("button", name="Show this page").click()
    pupil.get_by_role("link", name="Go there: Teach").click()
    expect(pupil.get_by_role("button", name="Begin a class")).to_be_visible()
    page.get_by_role("button", name="End the class").click()
    expect(page.get_by_text("Your class sees")).to_have_count(0)
    page.reload()
    expect(page.get_by_role("button", name="Begin a class")).to_be_visible()
    expect(page.get_by_text("Your class sees")).to_have_count(0)
    expect(pupil.get_by_text("The class has ended.")).to_be_visible(timeout=20_000)
