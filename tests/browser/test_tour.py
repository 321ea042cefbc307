"""The whole tour in a real browser: each step done wrongly first, then rightly, on the live control, with the
card in sight all the while, wide and on a phone; left once and resumed."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import wait_until_settled
from tests.browser.controls import close_heads, pick_head, show, shown_view
from tests.legible import STILL, WIDTHS


def card(page: Page) -> Locator:
    return page.locator(".st-key-tour-card")


def lesson(page: Page) -> Locator:
    return page.locator(".st-key-tour-below")


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=re.compile(name))


def one_of_the_row(page: Page, name: str) -> Locator:
    """A view among few, or the list that has it."""
    return page.get_by_role("radio", name=name, exact=True).or_(shown_view(page)).first


def opened(page: Page, title: str) -> None:
    expect(card(page)).to_contain_text(re.compile(rf"of 10: {title}"))
    expect(card(page)).not_to_contain_text("✓ done")


def told(page: Page, missing: str) -> None:
    expect(card(page)).to_contain_text(missing)
    expect(card(page)).not_to_contain_text("✓ done")


def taken_back(page: Page, way: str) -> None:
    """Clicks what leads back from a wrong turn, once the page has come to rest."""
    wait_until_settled(page)
    button(page, way).click()
    expect(card(page)).not_to_contain_text(re.compile("You changed|is open. Choose"))


def done(page: Page, onward: str) -> None:
    expect(card(page)).to_contain_text("✓ done")
    button(page, onward).click()


def predict(page: Page, option: str, found: str) -> None:
    """Commits to an answer; until then there is nothing to act on, and no picture."""
    expect(card(page)).to_contain_text("Answer the question below first.")
    expect(page.get_by_text("The picture opens when you have answered")).to_be_visible()
    expect(lesson(page)).not_to_contain_text("Why:")
    lesson(page).get_by_test_id("stRadio").get_by_text(option, exact=True).click()
    button(page, "Show the answer").click()
    expect(lesson(page)).to_contain_text(found)
    expect(card(page)).to_contain_text("Do this.")


def read_off(page: Page, option: str, found: str) -> None:
    """Answers what is asked beside the picture, once it is open."""
    expect(card(page)).to_contain_text("Answer the question below first.")
    lesson(page).get_by_test_id("stRadio").get_by_text(option, exact=True).click()
    button(page, "Show the answer").click()
    expect(lesson(page)).to_contain_text(found)


def seen(page: Page, place: Locator) -> Locator:
    """Brings a place to the top of what is seen: the card stays there too, and does not lie over it."""
    wait_until_settled(page)  # what is still to be drawn would move it
    beside_the_card(page, place)
    return place


def in_sight(page: Page, place: Locator) -> Locator:
    """The same of what the step asks for, at the width that the page has and then at the other one; what
    follows is done at that."""
    seen(page, place)
    (other,) = (size for size in WIDTHS.values() if size != page.viewport_size)
    page.set_viewport_size(other)
    page.evaluate(STILL)
    beside_the_card(page, place)
    return place


def beside_the_card(page: Page, place: Locator) -> None:
    expect(place).to_be_visible()
    place.evaluate("node => node.scrollIntoView({ block: 'start' })")
    expect(card(page)).to_be_in_viewport(ratio=1)
    expect(place).to_be_in_viewport()
    box, free = card(page).bounding_box(), place.bounding_box()
    assert box is not None
    assert free is not None
    assert free["y"] >= box["y"] + box["height"] or free["y"] + free["height"] <= box["y"]


def wrong_then_right(page: Page, wrong: str, right: str) -> None:
    """Another view than the one to choose, and then that one."""
    seen(page, one_of_the_row(page, wrong))
    show(page, wrong)
    told(page, f"You chose “{wrong}”. Choose “{right}”.")
    in_sight(page, one_of_the_row(page, right))
    show(page, right)


def resume(page: Page) -> None:
    """The way back into the tour stands in the menu, which a phone keeps closed."""
    page.get_by_test_id("stExpandSidebarButton").click()
    button(page, "Tour: step 5 of 10").click()
    page.get_by_test_id("stSidebarCollapseButton").get_by_role("button").click()


def own_scale(page: Page) -> Locator:
    return page.get_by_test_id("stCheckbox").get_by_text("Divide scores by")


def no_mask(page: Page) -> Locator:
    return page.get_by_test_id("stRadio").get_by_text("none: future visible", exact=True)


def tokens(page: Page) -> None:
    opened(page, "Tokens")
    sentence = page.get_by_role("textbox", name="Your sentence")
    sentence.press("End")
    sentence.press_sequentially("Tom")
    sentence.press("Enter")
    told(page, "The space is missing")
    for _ in "Tom":
        sentence.press("Backspace")
    sentence.press_sequentially(" Tom")
    sentence.press("Enter")
    read_off(page, "No, two ids", "Right: No, two ids.")
    done(page, "Next: Positions")


def positions(page: Page) -> None:
    opened(page, "Positions")
    wrong_then_right(page, "The table", "Added to the tokens")
    read_off(page, "Nothing", "The model says: The sum alone.")
    done(page, "Next: Scores")


def scores(page: Page) -> None:
    opened(page, "Scores")
    figure = page.get_by_test_id("figure")
    seen(page, figure).press("ArrowUp")
    told(page, "“Q” is open. Choose “scores”")
    taken_back(page, "Start this step over")
    in_sight(page, page.get_by_test_id("stage-scores")).click()
    told(page, "Now click the largest one in the row of “·Tom” (12).")
    seen(page, figure).press("ArrowLeft")
    told(page, "“·to” (11) has a score of 8.8, and another token has a larger one.")
    for _ in range(10):
        figure.press("ArrowLeft")
    done(page, "Next: Scaling")


def scaling(page: Page) -> None:
    opened(page, "Scaling")
    predict(page, "It grows", "Right: It grows. It was 0.138 and is now 0.526.")
    seen(page, no_mask(page)).click()
    told(page, "You changed something else: no mask.")
    taken_back(page, "Start this step over")
    expect(page.get_by_role("radio", name="the model's own")).to_be_checked()
    in_sight(page, own_scale(page)).click()
    expect(page.locator(".explorer.compared")).to_be_visible()
    done(page, "Next: The mask")


def mask(page: Page) -> None:
    """Left once, and resumed after the page was loaded anew."""
    opened(page, "The mask")
    expect(lesson(page)).to_contain_text(
        "Undone, so that this step starts with the unchanged model"
    )
    button(page, "Leave the tour").click()
    expect(card(page)).to_have_count(0)
    page.set_viewport_size(WIDTHS["phone"])
    page.reload()
    resume(page)
    opened(page, "The mask")
    predict(page, "It grows", "The model says: It shrinks. It was 4.25 and is now 3.33")
    seen(page, own_scale(page)).click()
    told(page, "You changed something else: scores not scaled.")
    taken_back(page, "Undo")
    expect(page.get_by_role("switch", name="Divide scores by")).to_be_checked()
    in_sight(page, no_mask(page)).click()
    told(page, "Now click a cell that it had hidden")
    seen(page, page.get_by_test_id("figure")).press("ArrowRight")
    expect(card(page)).to_contain_text("✓ done")
    in_sight(page, page.get_by_role("heading", name="What leaks"))
    expect(page.get_by_text("is 4.25 nats before and 3.33 after")).to_be_visible()
    done(page, "Next: Weights")


def weights(page: Page) -> None:
    opened(page, "Weights")
    predict(page, "“Tom” (0)", "The model says: “·Hill” (1).")
    seen(page, page.get_by_test_id("stage-output")).click()
    told(page, "Go back to “weights” and click the largest weight of a row.")
    seen(page, page.get_by_test_id("stage-weights")).click()
    in_sight(page, page.get_by_test_id("top-key-0")).click()
    told(
        page, "Right: in the row of “·Tom” (12), “·Hill” (1) has the most, 0.879. Choose “output”."
    )
    in_sight(page, page.get_by_test_id("stage-output")).click()
    done(page, "Next: Feed-forward")


def all_heads(page: Page) -> None:
    opened(page, "All heads")
    expect(page.get_by_text("induction head", exact=False)).to_have_count(0)  # it would tell
    predict(page, "L2H3", "The model says: L1H0.")
    page.set_viewport_size(WIDTHS["wide"])  # a phone keeps the choice of the head behind a button
    pick_head(page, 5)
    told(page, "You opened L0H5.")
    pick_head(page, 5, layer=1)
    told(page, "You opened L1H5.")
    pick_head(page, 0)
    close_heads(page)
    done(page, "Next: Take something away")


def feed_forward(page: Page) -> None:
    opened(page, "Feed-forward")
    wrong_then_right(page, "Layer by layer", "Contributions")
    read_off(page, "L2 feed-forward", "Right: L2 feed-forward.")
    done(page, "Next: Prediction")


def prediction(page: Page) -> None:
    opened(page, "Prediction")
    predict(
        page,
        "L1 attention",
        "Right: L1 attention. After L1 attention, “·Hill” has a probability of 0.9947.",
    )
    wrong_then_right(page, "Token by token", "Layer by layer")
    done(page, "Next: All heads")


def something_away(page: Page) -> None:
    opened(page, "Take something away")
    predict(page, "Yes, as surely as before", "The model says: No, another token comes first")
    switches = page.locator(".st-key-laboratory-switches")
    seen(page, switches.get_by_text("Scale the scores")).click()
    told(page, "You changed something else: scores not scaled.")
    taken_back(page, "Reset")
    in_sight(page, switches.get_by_text("Positions", exact=True)).click()
    done(page, "Finish")


STEPS = (
    *(tokens, positions, scores, scaling, mask),
    *(weights, feed_forward, prediction, all_heads, something_away),
)


@pytest.mark.walk
@pytest.mark.timeout(600)  # ten pages: on a busy machine they take longer than one
def test_the_whole_tour_tells_each_wrong_turn_and_stays_in_sight(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/")
    button(page, "Take the tour: 10 steps").click()
    for step in STEPS:
        step(page)
    expect(card(page)).to_contain_text("What next?")
    expect(card(page)).to_contain_text("positions off")  # taken back
    expect(page.get_by_role("switch", name="Divide scores by")).to_be_visible()  # on Explore
    expect(card(page).get_by_text("This is how a sentence passes")).to_be_in_viewport()
    expect(card(page).get_by_text("✓")).to_have_count(6)  # the reload forgot the four before it


def test_on_a_page_without_a_sentence_the_tour_says_where_it_waits(
    page: Page, open_page: Callable[..., Page]
) -> None:
    page.set_viewport_size(WIDTHS["phone"])
    open_page("/library", tour="heads")
    expect(page.locator(".st-key-tour-elsewhere")).to_contain_text(
        "It continues on the page “All heads”."
    )
    button(page, "Go there").click()
    opened(page, "All heads")
    show(page, "Tiny numbers")
    expect(page.get_by_text("The tour continues with “Your sentence”.")).to_be_visible()
