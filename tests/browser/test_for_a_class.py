"""For a class, in a real browser: the sheets as one file, and an answer that is hidden until it is opened."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import wait_until_settled
from tests.browser.controls import download

SHEET = '<section class="sheet">'  # of one pupil


def test_exercises_are_looked_at_and_saved(open_page: Callable[..., Page]) -> None:
    page = open_page("/for_a_class")
    expect(page.get_by_text("85–90 min")).to_be_visible()
    page.get_by_role("radio", name="Exercises").click()
    preview = page.locator(".st-key-class-preview")
    expect(preview).to_contain_text("turn the scores into weights with the softmax")
    expect(preview).not_to_contain_text("Exponentials")
    preview.get_by_text("Answer and working").click()
    expect(preview).to_contain_text("Exponentials")
    page.get_by_label("Pupils").fill("3")
    page.get_by_label("Pupils").press("Enter")
    sheet = page.get_by_label("Sheet", exact=True)
    expect(sheet).to_have_attribute("max", "3")
    wait_until_settled(page)
    text = sheets(page)
    assert text.count(SHEET) == 3
    assert "Exponentials" not in text


def test_a_press_while_the_page_runs_saves_the_sheets(open_page: Callable[..., Page]) -> None:
    page = open_page("/for_a_class", show="Exercises")
    pupils = page.get_by_label("Pupils")
    asked_for = {int(pupils.input_value())}
    for number in range(2, 10):
        asked_for.add(number)
        pupils.fill(str(number))
        pupils.press("Enter")
        assert sheets(page).count(SHEET) in asked_for


def sheets(page: Page) -> str:
    """The file of the pupils' sheets."""
    saved = download(page, page.get_by_role("button", name="Pupils' sheets"))
    return saved.path().read_text("utf-8")


@pytest.mark.walk
def test_a_pupil_opens_what_the_lecturer_shows_and_follows(
    open_page: Callable[..., Page], fresh_page: Callable[..., Page]
) -> None:
    page = open_page("/for_a_class", show="Share", text="the old man sat", head="2", mask="none")
    page.get_by_role("button", name="Share with the class").click()
    link = page.get_by_test_id("stCode").first
    expect(link).to_contain_text("?class=")
    code = page.get_by_role("img", name="QR code of the link for your class")
    expect(code).to_be_visible()
    assert code.evaluate("image => image.naturalWidth") > 150
    pupil = open_page("/", on=fresh_page(), **{"class": link.inner_text().strip()[-12:]})
    expect(pupil.get_by_role("heading", name="Attention, step by step")).to_be_visible()
    expect(pupil.get_by_role("textbox", name="Your sentence")).to_have_value("the old man sat")
    expect(pupil.get_by_role("radio", name="none: future visible")).to_be_checked()
    page.reload()  # the class goes on
    expect(page.get_by_text("Your class sees: Attention, step by step.")).to_be_visible()
    expect(page.get_by_test_id("stAlert")).to_contain_text("These links open on this computer only")
    page.get_by_role("button", name="Show this page").click()
    pupil.get_by_role("link", name="Go there: For a class").click()
    expect(pupil.get_by_role("button", name="Share with the class")).to_be_visible()
    page.get_by_role("button", name="End the class").click()
    expect(page.get_by_text("Your class sees")).to_have_count(0)
    page.reload()
    expect(page.get_by_role("button", name="Share with the class")).to_be_visible()
    expect(page.get_by_text("Your class sees")).to_have_count(0)
    expect(pupil.get_by_text("The class has ended.")).to_be_visible(timeout=20_000)
