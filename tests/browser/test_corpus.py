"""Heads over a corpus, in a real browser: examples with arcs, their search and links; a text of one's own."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.controls import show
from tests.model.profile.synthetic import small_profile
from viz.views.corpus.examples import BY_CHANCE


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small profile of Stories, as the command writes one."""
    made = tmp_path_factory.mktemp("profiles") / "mine"
    small_profile().save(made)
    return made


def open_folder(page: Page, folder: Path) -> None:
    show(page, "Your corpus")
    box = page.get_by_role("textbox", name="Open a folder")
    box.fill(str(folder))
    box.press("Enter")
    expect(page.get_by_role("combobox", name="Profile")).to_have_value("folder mine")


def test_the_examples_of_a_head_lead_to_the_explorer_with_the_same_weight(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/head", model="stories", place="decoder.1.self", head=2)
    expect(page.get_by_test_id("examples-title")).to_contain_text("Examples of L1H2:")
    expect(page.locator(".st-key-page")).to_contain_text("of the weights that this head gives")
    example = page.get_by_test_id("example").first
    (weight,) = re.findall(r"weight (\d\.\d{4})", example.inner_text())
    with page.context.expect_page() as opened:
        example.get_by_role("link").click()
    expect(opened.value.get_by_test_id("readout")).to_contain_text(f"weight {float(weight):.2f}")


@pytest.mark.walk
def test_examples_are_searched_for_a_token_and_show_fewer_tokens_on_a_phone(
    open_page: Callable[..., Page], folder: Path
) -> None:
    page = open_page("/all_heads", model="stories", place="decoder.1.self", head=2)
    open_folder(page, folder)
    page.get_by_text("All about L1H2").click()
    title = page.get_by_test_id("examples-title")
    expect(title).to_contain_text("Examples of L1H2:")
    expect(page.get_by_text("By chance, beside them")).to_be_visible()
    expect(page.locator("ol.examples").nth(1).get_by_test_id("example")).to_have_count(BY_CHANCE)
    search = page.get_by_role("textbox", name="Search")
    search.fill("zebra")
    search.press("Enter")
    expect(page.get_by_text("from or to “zebra”: none. The search goes through")).to_be_visible()
    search.fill("tom")
    search.press("Enter")
    expect(title).to_contain_text("Examples of L1H2 from or to “tom”")
    page.get_by_text("of all heads", exact=True).click()
    expect(title).to_contain_text("Examples of all heads from or to “tom”")
    assert all(
        "Tom" in words
        for words in page.get_by_test_id("example").locator(".said").all_inner_texts()
    )
    faces = page.get_by_test_id("example").first.locator(".face")
    wide = faces.count()
    page.set_viewport_size({"width": 390, "height": 844})
    expect(faces).not_to_have_count(wide)
    assert 2 <= faces.count() <= 14  # the query and the key, each with three tokens on both sides


@pytest.mark.process
def test_a_text_of_ones_own_is_estimated_profiled_stopped_and_seen_by_nobody_else(
    open_page: Callable[..., Page], fresh_page: Callable[..., Page]
) -> None:
    page = open_page("/all_heads", model="stories")
    show(page, "Your corpus")
    text = b"Tom saw a red ball. Anna ran home. " * 4_000
    with page.expect_response(lambda answer: "/_stcore/upload_file" in answer.url and answer.ok):
        page.locator("input[type=file]").set_input_files(
            {"name": "mine.txt", "mimeType": "text/plain", "buffer": text}
        )
    expect(page.get_by_text("mine.txt")).to_be_visible()
    page.get_by_role("button", name="How long will it take?").click()
    estimate = page.get_by_text(re.compile(r"[\d,]+ windows, [\d,]+ tokens: about"))
    expect(estimate).to_be_visible()
    windows = estimate.inner_text().partition(" ")[0].replace(",", "")
    page.get_by_role("button", name="Make the profile").click()
    expect(page.get_by_text(re.compile(rf"^[1-9]\d* of {windows} windows\."))).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(
        page.get_by_text(re.compile(rf"the profile is of \d+ of {windows} windows"))
    ).to_be_visible()
    page.get_by_role("button", name="Show its heads").click()
    mine = "mine.txt (Stories)"
    profile = page.get_by_role("combobox", name="Profile")
    expect(profile).to_have_value(mine)
    other = open_page(
        "/all_heads", on=fresh_page(), model="stories", show="Over a corpus", profile=mine
    )
    expect(other.get_by_text("is largest in")).to_be_visible()
    expect(other.get_by_role("combobox", name="Profile")).to_have_count(0)  # one alone is no choice
