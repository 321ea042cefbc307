"""The encoder–decoder page in a real browser: words come out, lines cross, French of one's own."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.controls import plots, show
from tests.legible import STILL

SENTENCE = 240  # pixels that the sentence has at least in the work bar
LINES = """() => document.querySelector('.js-plotly-plot').data
    .filter(line => line.mode === 'lines' && line.x[0] !== null && line.line.width < 12)
    .flatMap(line => line.y.flatMap((from, at) => at % 3 ? [] : [[from, line.y[at + 1]]]))"""


@pytest.mark.walk
def test_the_black_cat_becomes_le_chat_noir_and_its_lines_cross(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/encoder_decoder")
    expect(page.get_by_text("are kept for the other pages")).to_be_visible()
    new = page.locator("mark")
    expect(new).to_have_text("noir")
    expect(page.get_by_text(re.compile(r"“noir”.*0[.]\d{4}.*“black”"))).to_be_visible()
    page.get_by_role("button", name="▶ Play").click()
    expect(new).to_have_text("<end>")  # five steps by themselves
    expect(page.get_by_role("button", name="▶ Play")).to_be_visible()
    page.get_by_role("slider", name="Step").focus()
    page.keyboard.press("ArrowLeft")
    expect(new).to_have_text("dort")
    page.keyboard.press("ArrowLeft")
    expect(new).to_have_text("noir")
    page.set_viewport_size({"width": 1024, "height": 768})
    page.evaluate(STILL)
    box = page.get_by_role("textbox", name="Your sentence").bounding_box()
    assert box["width"] >= SENTENCE
    show(page, "Alignment")
    expect(
        page.get_by_text("“black cat” becomes “chat noir”: the reference lines cross")
    ).to_be_visible()
    expect(page.locator(".js-plotly-plot").filter(has_text="reference")).to_have_count(1)
    page.evaluate(STILL)
    drawn = page.evaluate(LINES)
    assert [2, 1] in drawn
    assert [1, 2] in drawn
    assert [0, 0] in drawn


def test_each_kind_of_attention_has_its_map_and_the_way_to_its_steps(
    open_page: Callable[..., Page],
) -> None:
    page = open_page(
        "/encoder_decoder", model="translate-en-fr", text="the old house", show="Three attentions"
    )
    for kind in ("Encoder self-attention", "Masked decoder self-attention", "Cross-attention"):
        expect(plots(page).filter(has_text=kind)).to_have_count(1)
    page.get_by_role("link", name=re.compile("encoder L.H., step by step")).click()
    expect(page.get_by_test_id("explorer")).to_be_visible()
    expect(page).to_have_url(re.compile("place=encoder"))


@pytest.mark.walk
def test_words_of_ones_own_are_judged_and_unknown_ones_lead_on(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/encoder_decoder", model="translate-en-fr", text="the black cat sleeps")
    show(page, "Your own French")
    french = page.get_by_role("textbox", name="Your French")
    french.fill("le noir chat dort")
    french.press("Enter")
    expect(page.get_by_text("The least expected is “noir”")).to_be_visible()
    expect(page).to_have_url(re.compile("target=le"))
    french.fill("le chat bonjour")
    french.press("Enter")
    expect(page.get_by_text("This model does not know “bonjour”")).to_be_visible()
    english = page.get_by_role("textbox", name="Your sentence")
    english.fill("the hungry cat")
    english.press("Enter")
    expect(page.get_by_text("This model does not know “hungry”")).to_be_visible()
    page.get_by_role("button", name="Other sentences").click()
    expect(page.get_by_text("Adjectives: old, young")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Open “the black cat sleeps”").click()
    expect(page.get_by_text("This model does not know “hungry”")).to_have_count(0)
    expect(english).to_have_value("the black cat sleeps")
