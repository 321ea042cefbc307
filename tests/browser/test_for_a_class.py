"""For a class, in a real browser: the sheets as one file, and an answer that is hidden until it is opened."""

from collections.abc import Callable

from playwright.sync_api import Page, expect


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
    with page.expect_download() as saved:
        page.get_by_role("button", name="Pupils' sheets").click()
    text = saved.value.path().read_text("utf-8")
    assert text.count('<section class="sheet">') == 3
    assert "Exponentials" not in text
