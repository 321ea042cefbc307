"""The frame: the picture is near the top of every page, and the map leads through the model."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from viz.state.menu import PAGES

# The first of these on a page is its first picture; a page of words alone begins with its words.
INSIDE = (
    ".js-plotly-plot",
    ".arc-line",
    ".explorer .strip",
    ".player",
    "[data-testid=stDataFrame]",
    "[data-testid=stHtml]",  # the tokens in boxes
    "canvas",
)
PICTURE = ", ".join(f".st-key-page {picture}" for picture in INSIDE)
WORDS = ".st-key-page p, .st-key-page input"
LOWEST = {(1440, 900): 250, (390, 844): 420}  # pixels from the top at which it begins
PRE_NORM = ["norm", "attention", "+", "norm", "feed-forward", "+"]
DECODER = ["tokens", "+ positions", *PRE_NORM, "norm", "logits", "next token"]


@pytest.mark.parametrize("size", LOWEST, ids=["wide", "phone"])
def test_the_first_picture_is_near_the_top_of_every_page(
    open_page: Callable[..., Page], fresh_page: Callable[..., Page], size: tuple[int, int]
) -> None:
    width, height = size
    page = fresh_page(viewport={"width": width, "height": height})
    tops = {}
    for entry in PAGES:
        open_page(f"/{entry.address}", on=page)
        shows = entry.reads or entry.has_beats  # the others begin with words
        first = page.locator(PICTURE if shows else WORDS).locator("visible=true").first
        expect(first).to_be_visible()
        box = first.bounding_box()
        assert box is not None
        tops[entry.title] = round(box["y"])
    assert {title: top for title, top in tops.items() if top > LOWEST[size]} == {}


@pytest.mark.parametrize(
    ("model", "text", "rails"),
    [
        ("house-gpt", "The cat sat", {"decoder": DECODER}),
        ("induction", "q f m", {"decoder": [
            "tokens", "+ positions", "norm", "attention", "+", "norm", "logits", "next token"]}),
        ("minilm", "the cat sat", {"encoder": [
            "tokens", "+ positions", "norm", "attention", "+", "norm", "feed-forward", "+", "norm",
            "vectors"]}),
    ],
)  # fmt: skip
def test_the_map_has_the_blocks_of_the_open_model(
    open_page: Callable[..., Page], model: str, text: str, rails: dict[str, list[str]]
) -> None:
    page = open_page("/attention", text=text, model=model)
    for stack, blocks in rails.items():
        expect(page.locator(f".st-key-rail-{stack}").get_by_role("link")).to_have_text(blocks)


def test_the_map_marks_page_and_layer_and_leads_on_with_the_sentence(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/attention", place="decoder.2.self", text="The cat saw the dog")
    ticks = page.locator(".ticks")
    assert filled(page) == ["attention"]
    expect(ticks).to_have_attribute("aria-label", "4 layers, layer 2 is chosen")
    page.get_by_test_id("head-picker").click()
    page.get_by_role("gridcell", name="L0H3").click()
    expect(page.get_by_test_id("title")).to_contain_text("L0H3")
    expect(ticks).to_have_attribute("aria-label", "4 layers, layer 0 is chosen")
    page.keyboard.press("Escape")
    link = page.locator(".st-key-model-map").get_by_role("link", name="feed-forward")
    link.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Feed-forward")
    expect(page.get_by_role("textbox", name="Your sentence")).to_have_value("The cat saw the dog")
    expect(link).to_be_focused()
    assert filled(page) == ["+", "feed-forward", "+"]


def filled(page: Page) -> list[str]:
    """The blocks of the map that are filled."""
    blocks = page.locator(".st-key-model-map").get_by_role("link")
    words: list[str] = blocks.evaluate_all(
        """links => links.filter((link) => getComputedStyle(link).backgroundColor !== "rgba(0, 0, 0, 0)")
            .map((link) => link.innerText.trim())"""
    )
    return words
