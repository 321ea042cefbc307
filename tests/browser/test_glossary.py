"""The glossary in a real browser: a term in a text leads to it, and it answers while one types."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from viz.views.glossary.glossary import TERMS, term


def test_a_term_in_an_idea_opens_the_glossary_at_it_beside_the_page(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/")
    page.get_by_text("The idea, in words").click()
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="softmax").click()
    glossary = opened.value
    linked = glossary.locator(".st-key-glossary-linked")
    expect(linked).to_contain_text("Turns a row of numbers into shares that sum to 1")
    linked.get_by_role("link", name="By hand: Softmax of three scores →").click()
    expect(glossary.get_by_role("heading", name="Worked examples")).to_be_visible()
    expect(glossary.get_by_text("Softmax of three scores.")).to_be_visible()
    expect(page.get_by_text("The idea, in words")).to_be_visible()


@pytest.mark.walk
def test_the_list_has_all_terms_and_follows_a_letter_and_what_is_typed(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/glossary", term="<b>flux</b> & *co*")
    expect(page.get_by_text("The glossary has no term “<b>flux</b> & *co*”.")).to_be_visible()
    terms = page.locator(".term")
    expect(terms).to_have_count(len(TERMS))
    broken = page.evaluate(
        "[...document.images].filter(one => one.complete && !one.naturalWidth).length"
    )
    assert broken == 0
    page.get_by_role("navigation", name="Letters").get_by_role("link", name="S", exact=True).click()
    expect(page.get_by_role("heading", name="S", exact=True)).to_be_in_viewport()
    expect(page.get_by_text(term("Scaled score").meaning)).to_be_in_viewport()
    expect(terms).to_have_count(len(TERMS))  # the same page still
    box = page.get_by_role("searchbox", name="Search")
    box.press_sequentially("induction")
    expect(page.get_by_text(f"1 of {len(TERMS)} terms")).to_be_visible()
    expect(terms).to_contain_text(["Induction head"])
    box.fill("<b>qq")
    expect(page.get_by_text("No term contains these words.")).to_be_visible()
    box.fill("")
    expect(terms).to_have_count(len(TERMS))
