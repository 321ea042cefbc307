"""The whole tour in a real browser, each step done on the live control; left once and resumed."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect


def card(page: Page) -> Locator:
    return page.locator(".st-key-tour-card")


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=re.compile(name))


def opened(page: Page, title: str) -> None:
    expect(card(page)).to_contain_text(re.compile(rf"of 10: {title}"))
    expect(card(page)).not_to_contain_text("✓ done")


def done(page: Page) -> None:
    expect(card(page)).to_contain_text("✓ done")


def predict(page: Page, option: str, found: str) -> None:
    """Commits to an answer; the numbers come afterwards."""
    expect(card(page)).not_to_contain_text("Why:")
    card(page).get_by_text(option, exact=True).click()
    button(page, "Show the answer").click()
    expect(card(page)).to_contain_text(found)


@pytest.mark.timeout(400)  # ten pages: on a busy machine they take longer than one
def test_the_whole_tour_is_done_by_acting_and_can_be_left_and_resumed(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/")
    button(page, "Take the tour: 10 steps").click()

    opened(page, "Tokens")
    sentence = page.get_by_role("textbox", name="Your sentence")
    sentence.press("End")
    sentence.press_sequentially(" Tom")
    sentence.press("Enter")
    done(page)
    button(page, "Next: Positions").click()

    opened(page, "Positions")
    page.get_by_role("radio", name="Added to the tokens").click()
    done(page)
    button(page, "Next: Scores").click()

    opened(page, "Scores")
    page.get_by_test_id("stage-scores").click()
    page.get_by_test_id("figure").press("ArrowLeft")
    done(page)
    button(page, "Next: Scaling").click()

    opened(page, "Scaling")
    predict(page, "It grows", "Right: It grows. It was 0.138 and becomes 0.526.")
    page.get_by_test_id("stCheckbox").get_by_text("Divide scores by").click()
    done(page)
    expect(page.locator(".explorer.compared")).to_be_visible()
    button(page, "Next: The mask").click()

    opened(page, "The mask")
    button(page, "Leave the tour").click()
    expect(card(page)).to_have_count(0)
    page.reload()
    button(page, "Tour: step 5 of 10").click()
    opened(page, "The mask")
    predict(page, "Its weights change", "The model says: All its weights stay as they are")
    page.get_by_test_id("stRadio").get_by_text("none: all may look", exact=True).click()
    done(page)
    button(page, "Next: Weights").click()

    opened(page, "Weights")
    predict(page, "“·Hill” (1)", "Right: “·Hill” (1).")
    page.get_by_test_id("stage-weights").click()
    page.get_by_test_id("top-key-0").click()
    page.get_by_test_id("stage-output").click()
    done(page)
    button(page, "Next: All heads").click()

    opened(page, "All heads")
    predict(page, "L1H0", "Right: L1H0.")
    page.get_by_test_id("stSelectbox").filter(has_text="Head").last.get_by_role("combobox").click()
    page.get_by_role("option", name="5", exact=True).click()
    done(page)
    button(page, "Next: Feed-forward").click()

    opened(page, "Feed-forward")
    page.get_by_role("radio", name="Contributions").click()
    done(page)
    button(page, "Next: Prediction").click()

    opened(page, "Prediction")
    expect(page.locator(".js-plotly-plot")).to_have_count(0)  # it would tell the answer
    predict(page, "“·Hill”", "0.9767")
    page.get_by_role("radio", name="Token by token").click()
    done(page)
    button(page, "Next: Take something away").click()

    opened(page, "Take something away")
    predict(page, "Yes, as surely as before", "The model says: No, another token comes first")
    page.get_by_role("radio", name="Positions", exact=True).click()
    page.locator(".st-key-laboratory-editor").get_by_text("Positions", exact=True).click()
    done(page)
    button(page, "Finish").click()

    expect(card(page)).to_contain_text("Where to go on.")
    expect(card(page).get_by_text("✓")).to_have_count(6)  # the reload forgot the four before it
