"""The screen of the main job: a sentence, a head, three switches, and what they change."""

import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from model import Intervention, load_model
from model.analysis.run_comparison import losses
from tests.browser.conftest import wait_until_settled
from tests.browser.controls import arc_weights, drawn
from viz.state.link import View

PARTS = ("headline", "figure", "top-keys", "stages", "readout", "heads")


def ready(page: Page) -> None:
    expect(page.get_by_test_id("explorer")).to_have_attribute("data-ready", "true")


def unmask(page: Page) -> None:
    page.get_by_text("Hide the future").click()
    expect(page.get_by_test_id("headline")).to_contain_text("No mask")
    ready(page)


@pytest.mark.parametrize("size", [(1440, 900), (1280, 720)])
def test_all_of_it_is_on_one_screen(
    page: Page, open_page: Callable[..., Page], size: tuple[int, int]
) -> None:
    width, height = size
    page.set_viewport_size({"width": width, "height": height})
    open_page("/")
    ready(page)
    parts = {name: page.get_by_test_id(name) for name in PARTS}
    parts |= {
        name: page.get_by_text(name) for name in ("Next after", "Loss per", "Hide the future")
    }
    for name, part in parts.items():
        box = part.first.bounding_box()
        assert box is not None, name
        assert box["y"] >= 0, name
        assert box["y"] + box["height"] <= height + 1, name
    side = page.evaluate(
        """() => { const found = [];
            const look = (root) => { for (const one of root.querySelectorAll("*")) {
                if (one.matches("svg.marks rect")) found.push(one.getBBox().width);
                if (one.shadowRoot) look(one.shadowRoot); } };
            look(document); return Math.max(...found); }"""
    )
    assert side >= (460 if size == (1440, 900) else 280)


def test_the_arcs_are_the_models_weights_over_the_columns_of_the_map(
    open_page: Callable[..., Page],
) -> None:
    trace = load_model("house-gpt").trace(View().text)
    weights = trace.find(View().place).weights(View().head)
    page = open_page("/")
    ready(page)
    tokens = page.locator(".header").get_by_role("radio")
    expect(tokens).to_have_count(len(trace.tokens))
    for query in (View().query, View().query - 1):
        tokens.nth(query).click()
        expect(page.get_by_test_id("explorer")).to_have_attribute("data-query", str(query))
        assert arc_weights(page) == pytest.approx(drawn(weights[query]), abs=1e-3)
        most = int(weights[query].argmax())
        expect(page.get_by_test_id("headline")).to_contain_text(f"{weights[query, most]:.2f}")


def test_lifting_the_mask_moves_numbers_and_the_headline_says_what_happened(
    open_page: Callable[..., Page],
) -> None:
    model = load_model("house-gpt")
    before, after = (
        model.trace(View().text),
        model.trace(View().text, intervention=Intervention(mask="none")),
    )
    old, new = (run.find(View().place).weights(View().head) for run in (before, after))
    freed = np.where(
        np.triu(np.ones_like(new), 1), new - old, -1
    )  # no token of the story's cells is a sign
    query, key = np.unravel_index(freed.argmax(), new.shape)
    page = open_page("/")
    ready(page)
    unmask(page)
    explorer = page.get_by_test_id("explorer")
    expect(explorer).to_have_attribute("data-query", str(query))  # where the change gave most
    expect(explorer).to_have_attribute("data-key", str(key))
    headline = page.get_by_test_id("headline")
    expect(headline).to_contain_text(f"{new[query, key]:.2f}")
    lost = page.locator("p.outcome.large").first
    for run in (before, after):
        expect(lost).to_contain_text(f"{losses(run).mean():.2f}")
    page.get_by_role("button", name="Undo").click()
    expect(headline).not_to_contain_text("No mask")
    expect(page).not_to_have_url(re.compile("mask="))


def test_before_after_and_difference_stand_in_the_same_pixels(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/", mask="none", query=8, key=5)
    ready(page)
    model = load_model("house-gpt")
    old, new = (
        model.trace(View().text, intervention=change).find(View().place).weights(View().head)[8, 5]
        for change in (Intervention(), Intervention(mask="none"))
    )
    place = page.get_by_test_id("figure").bounding_box()
    held = page.get_by_role("button", name="Before", exact=True)
    for press, number in (
        (lambda: held.press("Enter"), old),
        (lambda: held.press("Enter"), new),
        (lambda: page.keyboard.down("b"), old),
        (lambda: page.keyboard.up("b"), new),
        (page.get_by_role("button", name="Difference").click, new - old),
    ):
        press()
        ready(page)
        assert page.get_by_test_id("figure").bounding_box() == place
        words = page.get_by_test_id("figure").get_attribute("aria-label") or ""
        said = float(words.rsplit(": ", 1)[1].replace("−", "-").split(",")[0].split(" ")[0])
        assert said == pytest.approx(float(number), abs=6e-5)


def test_a_head_that_is_switched_off_is_struck_through_and_says_its_loss(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/", detail="full")
    ready(page)
    page.get_by_text("Use head L1H7").click()
    expect(page.get_by_test_id("headline")).to_contain_text("L1H7 off")
    expect(
        page.get_by_test_id("heads").get_by_role("gridcell", name=re.compile("L1H7.*zero"))
    ).to_have_count(1)


def test_another_sentence_opens_on_its_last_token_and_largest_key(
    open_page: Callable[..., Page],
) -> None:
    text = "Anna saw a dog and Tom saw Anna"
    weights = load_model("house-gpt").trace(text).find(View().place).weights(View().head)
    page = open_page("/")
    ready(page)
    box = page.get_by_role("textbox", name="Your sentence")
    box.fill(text)
    box.press("Enter")
    explorer = page.get_by_test_id("explorer")
    expect(explorer).to_have_attribute("data-query", str(len(weights) - 1))
    expect(explorer).to_have_attribute("data-key", str(int(weights[-1].argmax())))


def test_an_encoder_says_how_far_its_vector_moves(open_page: Callable[..., Page]) -> None:
    page = open_page("/", model="minilm", scale="1.0")
    ready(page)
    expect(page.locator(".st-key-outcome")).to_contain_text(re.compile(r"cosine.*0\.\d{3}"))
    assert len(arc_weights(page)) > 1


def test_every_stage_keeps_the_map_where_it_is(open_page: Callable[..., Page]) -> None:
    page = open_page("/", detail="full")
    ready(page)
    before = page.get_by_test_id("figure").bounding_box()
    assert before is not None
    for stage in ("query", "scores", "output"):
        page.get_by_test_id(f"stage-{stage}").click()
        expect(page.get_by_test_id("explorer")).to_have_attribute("data-stage", stage)
        ready(page)
        after = page.get_by_test_id("figure").bounding_box()
        assert (before["x"], before["y"]) == (after["x"], after["y"]), stage


@pytest.mark.parametrize("way", ["why?", "carries"])
def test_a_card_leads_to_its_cell_and_the_session_stays(
    open_page: Callable[..., Page], way: str
) -> None:
    page = open_page("/", mask="none")
    ready(page)
    page.evaluate("window.stays = true")
    page.get_by_test_id("figure").press("ArrowUp")
    page.get_by_test_id("figure").press("Enter")
    link = page.get_by_test_id("card").get_by_role("link", name=way)
    asked = parse_qs(urlsplit(link.get_attribute("href") or "").query)
    link.click()
    page.wait_for_url("**/?*show=*")
    opened = {"why?": "Why this score?", "carries": "What it carries"}[way]
    drawer = page.locator(".st-key-drawer")
    expect(drawer).to_contain_text(opened)
    expect(drawer).to_contain_text("L1H7: ·ball → ·Tom")
    assert (asked["query"], asked["key"], asked["mask"]) == (["10"], ["12"], ["none"])
    assert page.evaluate("window.stays")
    page.get_by_test_id("figure").press("ArrowUp")  # the drawer follows the map
    expect(drawer).to_contain_text("L1H7: ·the → ·Tom")
    drawer.get_by_role("button", name="Close").click()
    expect(drawer).to_have_count(0)


@pytest.mark.walk
def test_detail_is_in_the_address_and_comes_back_with_the_visitor(
    open_page: Callable[..., Page], fresh_page: Callable[..., Page]
) -> None:
    page = open_page("/", on=fresh_page())
    ready(page)
    page.get_by_test_id("detail-full").click()
    expect(page.get_by_test_id("stage-query")).to_be_visible()
    page.wait_for_url("**detail=full*")
    again = open_page("/", on=page)
    expect(again.get_by_test_id("detail-full")).to_be_checked()
    again.get_by_test_id("detail-simple").click()
    expect(again.get_by_test_id("detail-simple")).to_be_checked()
    again.wait_for_url(re.compile(r"^(?!.*detail=)"))


def test_on_a_phone_the_switches_are_a_bar_at_the_foot_of_the_window(
    page: Page, open_page: Callable[..., Page]
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    open_page("/")
    ready(page)
    bar = page.locator(".st-key-hero-switches")
    low = bar.bounding_box()
    cell = page.locator("[data-mark=cell]").bounding_box()
    assert low["height"] <= 56
    assert cell["y"] + cell["height"] <= low["y"]
    page.get_by_test_id("figure").press("Enter")
    expect(page.get_by_test_id("card")).to_be_visible()
    figure, card = (page.get_by_test_id(name).bounding_box() for name in ("figure", "card"))
    assert card["y"] >= figure["y"] + figure["height"]
    assert 0 <= card["x"] < card["x"] + card["width"] <= 390
    for place in (page.get_by_test_id("headline"), page.get_by_test_id("heads")):
        place.scroll_into_view_if_needed()
        box = bar.bounding_box()
        assert box["y"] + box["height"] == pytest.approx(844, abs=1)
    bar.get_by_text("Hide the future").click()
    expect(page.get_by_test_id("headline")).to_contain_text("No mask")


def test_an_encoder_and_decoder_chooses_its_stack_before_its_head(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/", model="translate-en-fr", text="the black cat sleeps")
    ready(page)
    heads = page.get_by_test_id("heads")
    expect(heads.get_by_role("grid")).to_have_count(1)
    heads.get_by_role("radio", name="Cross-attention").click()
    expect(heads.get_by_role("grid", name="Cross-attention")).to_be_visible()
    expect(heads.get_by_role("grid")).to_have_count(1)
    expect(page.get_by_test_id("readout")).to_contain_text("cross L0H0")
    columns = page.locator(".header").get_by_role("radio")
    expect(columns).to_have_text(["the", "black", "cat", "sleeps"])


def test_of_many_heads_those_of_one_layer_are_seen(open_page: Callable[..., Page]) -> None:
    page = open_page("/", model="minilm", text="the cat sat", place="encoder.0.self", head=3)
    ready(page)
    heads = page.get_by_test_id("heads")
    expect(heads.get_by_role("rowheader")).to_have_count(6)
    expect(heads.get_by_role("gridcell")).to_have_count(12)
    heads.get_by_role("rowheader", name="L4").click()
    expect(heads.get_by_role("gridcell")).to_have_count(12)
    expect(page.get_by_test_id("readout")).to_contain_text("L4H3")
    wait_until_settled(page)  # what still comes for a click may draw the heads anew
    page.get_by_test_id("head-3").press("ArrowDown")
    expect(page.get_by_test_id("readout")).to_contain_text("L5H3")
    expect(heads.get_by_role("gridcell", selected=True)).to_be_focused()


def test_an_example_opens_on_its_own_row(open_page: Callable[..., Page]) -> None:
    page = open_page("/")
    ready(page)
    listed = page.get_by_test_id("stSelectbox").filter(has_text="Examples").get_by_role("combobox")
    listed.fill("“it” stands for")  # the list draws those in sight only
    page.get_by_role("option", name="What “it” stands for").click()
    expect(page.get_by_test_id("headline")).to_contain_text("it looks back at animal")
    ready(page)
    expect(page.get_by_test_id("explorer")).to_have_attribute("data-query", "10")
    expect(page.get_by_test_id("readout")).to_contain_text("it → animal")
