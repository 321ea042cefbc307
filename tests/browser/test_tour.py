"""The whole tour in a real browser: each step on the live control, the card beside the picture all the while,
wide and on a phone; left once and resumed."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import wait_until_settled
from tests.browser.controls import pick_head, show
from tests.legible import WIDTHS


def card(page: Page) -> Locator:
    return page.locator(".st-key-tour")


def button(page: Page, name: str) -> Locator:
    return card(page).get_by_role("button", name=re.compile(name))


def opened(page: Page, title: str) -> None:
    expect(card(page)).to_contain_text(re.compile(rf"of 8: {title}"))
    expect(card(page)).not_to_contain_text("✓ Done")


def told(page: Page, missing: str) -> None:
    expect(card(page)).to_contain_text(missing)
    expect(card(page)).not_to_contain_text("✓ Done")


def done(page: Page, onward: str) -> None:
    expect(card(page)).to_contain_text("✓ Done")
    button(page, onward).click()


def answer(page: Page, option: str, found: str) -> None:
    """Commits to an answer; the picture stands beside the question."""
    views = page.get_by_role("radio", name="Layer by layer")
    beside_the_card(page, page.locator(".explorer").or_(views).first)
    card(page).get_by_role("button", name=option, exact=True).click()
    expect(card(page)).to_contain_text(found)


def beside_the_card(page: Page, place: Locator) -> Locator:
    """A place is seen whole, and no part of it lies below the card; at the width of a phone too."""
    for size in [
        *(one for one in WIDTHS.values() if one != page.viewport_size),
        page.viewport_size,
    ]:
        page.set_viewport_size(size)
        wait_until_settled(page)
        place.scroll_into_view_if_needed()
        expect(place).to_be_visible()
        box, free = card(page).bounding_box(), place.bounding_box()
        column = free["x"] >= box["x"] + box["width"]
        main = page.locator(".stMain").bounding_box()
        assert column or main["y"] + main["height"] <= box["y"] + 1
    return place


def switch(page: Page, name: str) -> Locator:
    return page.get_by_test_id("stCheckbox").get_by_text(name)


def tokens(page: Page) -> None:
    opened(page, "The next word")
    sentence = page.get_by_role("textbox", name="Your sentence")
    sentence.press("End")
    sentence.press_sequentially("Tom")
    sentence.press("Enter")
    told(page, "The space is missing")
    for _ in "Tom":
        sentence.press("Backspace")
    sentence.press_sequentially(" Tom")
    sentence.press("Enter")
    answer(page, "“·Hill”", "Right: “·Hill”.")
    done(page, "Next: Scores")


def scores(page: Page) -> None:
    opened(page, "Scores")
    figure = page.get_by_test_id("figure")
    figure.press("ArrowUp")
    told(page, "“weights” is open. Choose “scores”")
    button(page, "Start this step over").click()
    expect(card(page)).not_to_contain_text("is open. Choose")
    beside_the_card(page, page.get_by_test_id("stage-scores")).click()
    told(page, "Now click the largest one in the row of “·Tom” (12).")
    figure.press("ArrowLeft")
    told(page, "“·to” (11) has a score of 8.8, and another token has a larger one.")
    for _ in range(10):
        figure.press("ArrowLeft")
    done(page, "Next: Scaling")


def scaling(page: Page) -> None:
    opened(page, "Scaling")
    answer(page, "It grows", "Right: It grows. It was 0.138 and is now 0.526.")
    switch(page, "Hide the future").click()
    told(page, "You changed something else: no mask.")
    button(page, "Start this step over").click()
    expect(page.get_by_role("switch", name="Hide the future")).to_be_checked()
    beside_the_card(page, switch(page, "Divide scores by")).click()
    done(page, "Next: The mask")


def mask(page: Page) -> None:
    """Left once, and resumed after the page was loaded anew."""
    opened(page, "The mask")
    expect(card(page)).to_contain_text("Undone, so that this step starts unchanged")
    button(page, "Leave").click()
    expect(card(page)).to_have_count(0)
    page.reload()
    page.get_by_role("button", name="Tour: step 4 of 8").first.click()
    opened(page, "The mask")
    answer(page, "It grows", "The model says: It shrinks. It was 4.25 and is now 3.33")
    beside_the_card(page, switch(page, "Hide the future")).click()
    done(page, "Next: Weights")


def weights(page: Page) -> None:
    opened(page, "Weights")
    page.get_by_test_id("stage-output").click()
    told(page, "This is the row of “·ball” (5). Go back to “weights” and click in the last row.")
    page.get_by_test_id("stage-weights").click()
    figure = page.get_by_test_id("figure")
    for _ in range(7):
        figure.press("ArrowDown")
    told(page, "and another token has more")
    for _ in range(4):
        figure.press("ArrowLeft")
    told(page, "“·Hill” (1) has the most, 0.879. Choose “output”.")
    beside_the_card(page, page.get_by_test_id("stage-output")).click()
    done(page, "Next: All heads")


def all_heads(page: Page) -> None:
    opened(page, "All heads")
    pick_head(page, 5)
    told(page, "You opened L0H5.")
    pick_head(page, 0, layer=1)
    done(page, "Next: One head less")


def one_head_less(page: Page) -> None:
    opened(page, "One head less")
    answer(page, "It hardly moves", "The model says: It shrinks.")
    beside_the_card(page, switch(page, "Use head L0H1")).click()
    done(page, "Next: Layer by layer")


def layer_by_layer(page: Page) -> None:
    opened(page, "Layer by layer")
    answer(page, "L1 attention", "Right: L1 attention.")
    done(page, "Finish")


STEPS = (tokens, scores, scaling, mask, weights, all_heads, one_head_less, layer_by_layer)


@pytest.mark.walk
@pytest.mark.timeout(600)  # eight steps: on a busy machine they take longer than one page
def test_the_whole_tour_tells_each_wrong_turn_and_stays_beside_the_picture(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/")
    page.get_by_role("button", name="Take the tour").click()
    for step in STEPS:
        step(page)
    expect(card(page)).to_contain_text("What next?")
    expect(page.get_by_role("switch", name="Divide scores by")).to_be_visible()  # on Explore
    expect(card(page).get_by_text("✓")).to_have_count(5)  # the reload forgot the three before it


def test_on_a_page_without_a_sentence_the_tour_says_where_it_waits(
    page: Page, open_page: Callable[..., Page]
) -> None:
    page.set_viewport_size(WIDTHS["phone"])
    open_page("/papers", tour="stream")
    waits = page.locator(".st-key-tour-elsewhere")
    expect(waits).to_contain_text("It continues on the page “Stream”.")
    waits.get_by_role("button", name="Go there").click()
    opened(page, "Layer by layer")
    show(page, "Tiny numbers")
    expect(page.get_by_text("The tour continues with “Your sentence”.")).to_be_visible()
