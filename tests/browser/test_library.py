"""The Library in a real browser: a term in a text leads to it, and it answers while one types."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from viz.state.presets import EXAMPLES
from viz.views.glossary.glossary import TERMS, term
from viz.views.library.questions import questions


def test_a_term_in_an_idea_opens_the_library_at_it_beside_the_page(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/prediction")
    page.get_by_text("The idea, in words").click()
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="softmax").click()
    library = opened.value
    linked = library.locator(".linked")
    expect(linked).to_contain_text(term("Softmax").meaning)
    linked.get_by_role("link", name="By hand: ").click()
    expect(library.get_by_role("heading", name="Worked examples")).to_be_visible()
    library.wait_for_url("**example=softmax-of-three**")
    expect(page.get_by_text("The idea, in words")).to_be_visible()


@pytest.mark.walk
def test_the_list_has_everything_and_follows_a_topic_and_what_is_typed(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/library", term="<b>flux</b> & *co*")
    expect(page.get_by_text("“<b>flux</b> & *co*”")).to_be_visible()
    entries = page.locator(".entry")
    every = len(TERMS) + len(questions()) + len(EXAMPLES)
    expect(entries).to_have_count(every)
    broken = page.evaluate(
        "[...document.images].filter(one => one.complete && !one.naturalWidth).length"
    )
    assert broken == 0
    page.get_by_role("navigation", name="Topics").get_by_role("link", name="Masks").click()
    expect(page.get_by_role("heading", name="Masks", exact=True)).to_be_in_viewport()
    expect(entries).to_have_count(every)  # the same page still
    box = page.get_by_role("searchbox", name="Search the Library")
    box.press_sequentially("induction head")
    expect(entries.first).to_contain_text("Induction head")
    expect(page.get_by_role("heading", name="Masks", exact=True)).to_have_count(0)
    page.get_by_role("radio", name="Terms", exact=True).click()
    expect(entries.first).to_contain_text(term("Induction head").meaning)
    box.fill("<b>qq")
    expect(entries).to_have_count(0)
    box.fill("")
    expect(entries).to_have_count(len(TERMS))


@pytest.mark.walk
def test_an_example_opens_its_head_on_its_sentence(open_page: Callable[..., Page]) -> None:
    page = open_page("/examples")
    page.wait_for_url("**/library?**show=Examples**")
    example = EXAMPLES[1]
    card = page.locator(".entry", has_text=example.title).first
    card.get_by_role("link", name="Open it").click()
    expect(page.get_by_role("textbox", name="Your sentence")).to_have_value(example.view.text)
