"""The keys in a real browser: their list, the way to any head or page, the sentence, the lecture view."""

import re
from collections.abc import Callable

from playwright.sync_api import Locator, Page, Route, expect

from tests.browser.conftest import wait_until_settled
from tests.legible import STILL

LEAST = 18  # pixels of a label in the lecture view
# The letters that one sees, each with its size in pixels on the screen.
LETTERS = """root => {
    const seen = [];
    const look = (node) => {
        for (const element of node.querySelectorAll("*")) {
            if (element.shadowRoot) look(element.shadowRoot);
            if (element.closest(".katex")) continue;  // the indices of a formula are small by its rules
            const own = [...element.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
            const bounds = element.getBoundingClientRect();
            if (!own || bounds.width < 2 || !element.checkVisibility({ visibilityProperty: true })) continue;
            const box = element.closest(".explorer") ?? document.querySelector(".stMainBlockContainer");
            const larger = box.getBoundingClientRect().width / box.offsetWidth;
            seen.push([parseFloat(getComputedStyle(element).fontSize) * larger, element.textContent]);
        }
    };
    look(root);
    return seen;
}"""


def explorer(page: Page) -> Locator:
    return page.get_by_test_id("explorer")


def listening(page: Page) -> Page:
    """The page, once it hears the keys."""
    expect(page.locator(".keys[data-ready=true]")).to_be_attached()
    return page


def go_to(page: Page, name: str) -> None:
    page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name="Search")
    expect(box).to_be_focused()
    box.fill(name)
    box.press("Enter")
    expect(box).to_be_hidden()
    wait_until_settled(page)


def test_any_page_head_or_token_is_two_keys_away(open_page: Callable[..., Page]) -> None:
    page = listening(open_page("/"))
    expect(explorer(page)).to_have_attribute("data-ready", "true")
    go_to(page, "L0H2")
    expect(page.get_by_test_id("readout")).to_contain_text("L0H2")
    go_to(page, "hill")
    expect(explorer(page)).to_have_attribute("data-query", "1")
    go_to(page, "library")
    expect(page.get_by_role("heading", name="Library")).to_be_visible()
    go_to(page, "l1h3")  # is seen on the page of attention
    expect(page.get_by_test_id("readout")).to_contain_text("L1H3")
    expect(explorer(page)).to_have_attribute("data-query", "1")
    page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name="Search")
    box.fill("l1h")
    options = page.get_by_role("listbox", name="Found").get_by_role("option")
    expect(options).to_have_count(8)
    box.press("ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    box.fill("xyzzy")
    expect(page.get_by_text("Nothing in this app has these words.")).to_be_visible()
    page.keyboard.press("Escape")
    expect(box).to_be_hidden()


def test_enter_waits_for_the_list_of_what_can_be_found(open_page: Callable[..., Page]) -> None:
    page = listening(open_page("/library"))
    held: list[Route] = []
    page.route("**/catalogue.json*", lambda route: held.append(route))
    with page.expect_request("**/catalogue.json*"):
        page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name="Search")
    box.fill("Explore")
    expect(page.get_by_text("The list is still on its way.")).to_be_visible()
    box.press("Enter")
    expect(box).to_be_visible()
    held.pop().continue_()
    page.unroute("**/catalogue.json*")  # other tests have the same page
    expect(box).to_be_hidden()
    expect(page).to_have_url(re.compile(r":\d+/(\?|$)"))


def test_a_view_and_a_model_open_on_the_visitors_own_sentence(
    open_page: Callable[..., Page],
) -> None:
    page = listening(open_page("/layer_norm", text="Anna gave the ball to Tom"))
    go_to(page, "why does this head look")
    expect(page).to_have_url(re.compile(r"/\?.*show=Why"))
    box = page.get_by_role("textbox", name="Your sentence")
    expect(box).to_have_value("Anna gave the ball to Tom")
    expect(page.locator(".st-key-drawer")).to_contain_text("Why this score?")
    go_to(page, "stories")
    expect(page).to_have_url(re.compile("model=stories"))
    expect(box).to_have_value("Anna gave the ball to Tom")


def test_the_keys_are_listed_and_letters_are_left_to_the_sentence(
    open_page: Callable[..., Page],
) -> None:
    page = listening(open_page("/library"))
    listed = page.get_by_role("dialog", name="Keys")
    page.keyboard.press("?")
    expect(listed).to_be_visible()
    expect(listed).to_contain_text("search pages, terms")
    page.keyboard.press("Escape")
    expect(listed).to_be_hidden()
    go_to(page, "Explore")
    expect(explorer(page)).to_have_attribute("data-ready", "true")
    page.keyboard.press("/")
    box = page.get_by_role("textbox", name="Your sentence")
    expect(box).to_be_focused()
    box.press("Control+a")
    page.keyboard.type("Is it P")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("or p?")
    expect(box).to_have_value("Is it P\nor p?")
    expect(listed).to_be_hidden()
    box.press("Enter")
    expect(page.locator('[data-testid^="column-"]', has_text="⏎")).to_have_count(1)
    expect(box).to_have_value("Is it P\nor p?")


def test_the_lecture_view_shows_the_picture_in_letters_for_a_class(
    open_page: Callable[..., Page],
) -> None:
    page = listening(open_page("/"))
    expect(explorer(page)).to_have_attribute("data-ready", "true")
    page.evaluate(STILL)
    whole = page.get_by_test_id("figure").bounding_box()
    page.keyboard.press("p")
    for left in ("stSidebar", "sentence"):
        expect(page.get_by_test_id(left)).to_be_hidden()
    for shown in ("figure", "headline", "stages"):
        expect(page.get_by_test_id(shown)).to_be_in_viewport(ratio=0.99)
    page.evaluate(STILL)
    letters = page.locator(".stMain").evaluate(LETTERS)
    assert len(letters) > 20
    assert [text for size, text in letters if size < LEAST] == []
    larger = page.get_by_test_id("figure").bounding_box()
    assert larger
    assert whole
    assert larger["width"] > whole["width"]

    page.keyboard.press("ArrowLeft")
    expect(explorer(page)).to_have_attribute("data-stage", "masked")
    page.keyboard.press("ArrowUp")
    expect(explorer(page)).to_have_attribute("data-head", "6")
    page.keyboard.press("Shift+ArrowLeft")
    expect(explorer(page)).to_have_attribute("data-key", "0")
    page.keyboard.press("PageUp")
    expect(page.get_by_test_id("readout")).to_contain_text("L0H6")
    x, y = larger["x"] + larger["width"] * 0.6, larger["y"] + larger["height"] * 0.9
    page.mouse.click(x, y)  # the cell under the pointer is the one that is chosen
    page.evaluate(STILL)
    framed = page.locator("[data-mark=cell]").bounding_box()
    assert framed
    assert framed["x"] - 4 < x < framed["x"] + framed["width"] + 4
    assert framed["y"] - 4 < y < framed["y"] + framed["height"] + 4
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("stSidebar")).to_be_visible()

    go_to(page, "Next token")
    page.get_by_test_id("lecture").click()
    expect(page.locator(".js-plotly-plot").first).to_be_in_viewport()
    expect(page.get_by_role("heading", name="Next token")).to_be_visible()
    wait_until_settled(page)
    letters = page.locator(".stMain").evaluate(LETTERS)
    assert [text for size, text in letters if size < LEAST] == []
    chart = page.locator(".js-plotly-plot .main-svg").first.bounding_box()
    assert chart
    assert chart["x"] + chart["width"] <= 1440
    page.get_by_test_id("leave-lecture").click()
    expect(page.get_by_test_id("stSidebar")).to_be_visible()
