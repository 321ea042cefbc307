"""The pages on tokens and positions in a real browser: their views, switches and examples."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.controls import choose, more, show


def type_into(page: Page, label: str, text: str) -> None:
    box = page.get_by_label(label, exact=True)
    box.fill(text)
    box.press("Enter")


def test_from_tokens_to_two_sentences(open_page: Callable[..., Page]) -> None:
    page = open_page("/tokens", model="stories", text="a 🦊 <b>saw</b> the ball")
    boxes = page.get_by_role("list", name="Tokens of your sentence").get_by_role("listitem")
    expect(boxes.filter(has_text="part of 🦊").first).to_be_visible()
    expect(boxes.filter(has_text="·ball")).to_have_count(1)
    steps = page.get_by_role("list", name="Steps").get_by_role("listitem")
    expect(steps.last).to_contain_text("spelled in bytes")
    expect(page.get_by_text("✓ the tokenizer's own tokens")).to_be_visible()
    show(page, "Two tokenizers")
    expect(page.get_by_text("30,522 in the vocabulary")).to_be_visible()
    open_page("/vectors", model="stories", text="a 🦊 <b>saw</b> the ball")
    behind = more(page, "tokens-look-up-picture")
    expect(behind.get_by_text("differs from the row by at most 0, and")).to_be_visible()
    page.keyboard.press("Escape")
    show(page, "Nearest tokens")
    expect(page.locator(".js-plotly-plot .bars .point")).to_have_count(12)
    show(page, "Two sentences")
    type_into(page, "Second sentence", "Anna gave the ball to Tom")
    expect(page.get_by_text("·ball, at position", exact=False)).to_be_visible()
    expect(page.locator(".js-plotly-plot .scatterlayer .trace")).to_have_count(2)


def test_order_is_lost_with_the_mask_lifted(open_page: Callable[..., Page]) -> None:
    page = open_page("/positions", model="stories", text="the cat saw the dog")
    expect(page.get_by_label("Its words reordered")).to_have_value("the dog saw the cat")
    expect(page.locator(".js-plotly-plot").get_by_text("max ")).to_have_count(3)
    type_into(page, "Its words reordered", "the dog saw the ball")
    expect(page.get_by_text("Only in the first")).to_be_visible()


@pytest.mark.walk
def test_every_kind_of_positions(open_page: Callable[..., Page]) -> None:
    page = open_page("/positions", model="stories")
    show(page, "The table")
    expect(page.get_by_text("These are the positions of Stories.")).to_be_visible()
    for kind, width in (("Sinusoidal", "width of 128"), ("Rotary", "head width of 32")):
        choose(page, "Kind of positions", kind)
        expect(page.get_by_text(width)).to_be_visible()
    choose(page, "Picture", "Curves")
    expect(page.locator(".js-plotly-plot .scatterlayer .trace")).to_have_count(3)
    show(page, "How alike")
    expect(page.locator(".js-plotly-plot .heatmaplayer image")).to_be_visible()
    show(page, "Added to the tokens")
    expect(more(page, "positions-sum-picture")).to_contain_text("differs from the first state")


@pytest.mark.walk
def test_the_examples_by_hand_are_chosen_by_their_titles(open_page: Callable[..., Page]) -> None:
    page = open_page("/positions", model="stories")
    show(page, "Tiny numbers")
    example, step = (
        page.get_by_role("combobox", name=name, exact=True) for name in ("Example", "Step")
    )
    expect(step).to_have_value(re.compile("^1 of"))
    for number in (7, 0):
        before = step.input_value()
        example.click()
        expect(page.get_by_role("option")).to_have_count(8)
        option = page.get_by_role("option").nth(number)
        title = option.inner_text()
        option.click()
        expect(example).to_have_value(title)
        expect(step).not_to_have_value(before)
