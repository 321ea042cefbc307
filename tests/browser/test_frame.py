"""The frame: the map leads through the model. test_legible.py measures where each page's picture begins."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

PRE_NORM = ["norm", "attention", "+", "norm", "feed-forward", "+"]
DECODER = ["tokens", "vectors", "+ positions", *PRE_NORM, "norm", "logits", "next token"]


@pytest.mark.walk
@pytest.mark.parametrize(
    ("model", "text", "rails"),
    [
        ("house-gpt", "The cat sat", {"decoder": DECODER}),
        ("induction", "q f m", {"decoder": [
            "tokens", "vectors", "+ positions", "norm", "attention", "+", "norm", "logits", "next token"]}),
        ("minilm", "the cat sat", {"encoder": [
            "tokens", "vectors", "+ positions", "norm", "attention", "+", "norm", "feed-forward", "+", "norm",
            "output vectors"]}),
    ],
)  # fmt: skip
def test_the_map_has_the_blocks_of_the_open_model(
    open_page: Callable[..., Page], model: str, text: str, rails: dict[str, list[str]]
) -> None:
    page = open_page("/tokens", text=text, model=model)
    for stack, blocks in rails.items():
        expect(page.locator(f".rail[data-stack={stack}] a")).to_have_text(blocks)


def test_the_map_marks_page_and_layer_and_leads_on_with_the_sentence(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/prediction", place="decoder.2.self", text="The cat saw the dog")
    ticks = page.locator(".ticks")
    assert filled(page) == ["logits", "next token"]
    model_map = page.get_by_role("navigation", name="The parts of the model")
    here = model_map.locator("[aria-current=page]").locator("visible=true")
    expect(here).to_have_text(["logits"])
    expect(ticks).to_have_attribute("aria-label", "4 layers, layer 2 is chosen")
    (top, bottom), (above, below) = map(span, (page.locator(".rail .layer"), ticks))
    assert top <= above < below <= bottom  # in the frame of the layer
    link = model_map.get_by_role("link", name="feed-forward")
    link.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Feed-forward")
    expect(page.get_by_role("textbox", name="Your sentence")).to_have_value("The cat saw the dog")
    expect(link).to_be_focused()
    assert "f(x W_in) W_out" in link.evaluate("link => getComputedStyle(link, '::after').content")
    expect(here).to_have_text(["feed-forward"])
    assert filled(page) == ["feed-forward"]


def test_another_head_moves_the_tick_of_the_map(open_page: Callable[..., Page]) -> None:
    page = open_page("/", place="decoder.2.self", text="The cat saw the dog")
    page.get_by_role("gridcell", name="L0H3").click()
    expect(page.get_by_test_id("readout")).to_contain_text("L0H3")
    page.get_by_role("link", name="Walk", exact=True).click()
    ticks = page.locator(".ticks").locator("visible=true")
    expect(ticks).to_have_attribute("aria-label", "4 layers, layer 0 is chosen")


def test_on_a_phone_the_map_is_scrolled_to_the_block_of_the_page(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/prediction", text="The cat sat")
    page.set_viewport_size({"width": 390, "height": 844})
    page.reload()
    model_map = page.get_by_role("navigation", name="The parts of the model")
    here = model_map.locator("[aria-current=page]")
    expect(here).to_have_text(["logits"])
    expect(here.first).to_be_in_viewport(ratio=1)
    model_map.get_by_role("link", name="tokens", exact=True).press("Enter")
    expect(here).to_have_text(["tokens"])
    expect(here).to_be_in_viewport(ratio=1)


def span(place: Locator) -> tuple[float, float]:
    """From where to where it reaches, in pixels from the top."""
    box = place.bounding_box()
    return box["y"], box["y"] + box["height"]


def filled(page: Page) -> list[str]:
    """The blocks of the map that are filled."""
    blocks = page.locator(".st-key-model-map .rail a")
    words: list[str] = blocks.evaluate_all(
        """links => links.filter((link) => getComputedStyle(link).backgroundColor !== "rgba(0, 0, 0, 0)")
            .map((link) => link.innerText.trim())"""
    )
    return words
