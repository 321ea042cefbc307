"""The frame of a page, as it opens at 1440 by 900: few controls above the picture, letters that can be read
(test_legible.py holds every page to it), a place held for each picture, and the app's own face."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.controls import show
from tests.legible import PICTURE, STILL
from viz.state.navigation import HOME, PAGES, PLACES

RANKS, BESIDE_MAP, THINGS = 2, 12, 15
SMALLEST = 13  # pixels of letters
# What can be clicked above the first picture, and in how many rows. What leads to pages and sets nothing is
# not counted (the menu of the places, the pages of a place, the map of the model), nor is the way past
# the menu and what stands in the picture's own corner. A list, a box of a number and choices side by side are
# one thing each: the keyboard stops there once.
ABOVE = """(pictures) => {
    const shadows = (root) => [...root.querySelectorAll("*")].map((one) => one.shadowRoot).filter(Boolean);
    const all = (root, wanted) => [...root.querySelectorAll(wanted),
        ...shadows(root).flatMap((one) => all(one, wanted))];
    const isSeen = (one) => one.checkVisibility({ visibilityProperty: true, opacityProperty: true })
        && one.getBoundingClientRect().width > 1 && !one.closest("[data-testid=stSidebar]");
    const first = Math.min(...pictures.map((one) => one.getBoundingClientRect().top));
    const thing = "a[href], button, input, select, textarea, summary, [role=slider], [role=tab]";
    const groups = new Set();
    const things = all(document, thing).filter((one) => {
        if (one.tabIndex < 0 || !isSeen(one) || one.getBoundingClientRect().top >= first
            || one.closest("[class*=st-key-more-], .st-key-model-map, .stations")
            || one.parentElement.closest(thing)) return false;
        const group = one.closest("[role=radiogroup], [role=tablist]");
        return !group || (!groups.has(group) && groups.add(group));
    });
    const ranks = [];
    for (const one of things) {
        const { top, bottom } = one.getBoundingClientRect();
        const middle = (top + bottom) / 2;
        const rank = ranks.find(([above, below]) => above < middle && middle < below);
        if (rank) [rank[0], rank[1]] = [Math.min(rank[0], top), Math.max(rank[1], bottom)];
        else ranks.push([top, bottom]);
    }
    const name = (one) => (one.ariaLabel || one.innerText || one.value || one.tagName).trim().slice(0, 30);
    return { ranks: ranks.length, things: things.map(name) };
}"""
# Letters that are seen and too small. The indices of a formula are smaller than its letters by the rules of
# typesetting, and its copy for screen readers is not seen.
TOO_SMALL = """(smallest) => {
    const small = new Set();
    const look = (root) => {
        const texts = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
        for (let one = texts.nextNode(); one; one = texts.nextNode()) {
            if (one.shadowRoot) look(one.shadowRoot);
            const place = one.parentElement;
            if (one.nodeType !== Node.TEXT_NODE || !one.data.trim()) continue;
            if (!place || place.closest("style, script, .katex")) continue;
            const { width, height } = place.getBoundingClientRect();
            if (width <= 1 || height <= 1 || !place.checkVisibility({ visibilityProperty: true })) continue;
            const size = parseFloat(getComputedStyle(place).fontSize);
            if (size < smallest - 0.01) small.add(`${size} px: ${one.data.trim().slice(0, 40)}`);
        }
    };
    look(document.body);
    return [...small];
}"""
PALETTE = """() => [...document.querySelectorAll(
    ".stApp :is(button, a, [role=radio], [role=tab], [role=slider], [role=switch], label)")]
    .filter((one) => one.checkVisibility({ visibilityProperty: true }))
    .filter((one) => !one.closest(".stBidiComponent, .js-plotly-plot"))
    .flatMap((one) => ["color", "backgroundColor", "borderTopColor"].map((of) => getComputedStyle(one)[of]))
    .filter((colour, at, all) => all.indexOf(colour) === at)"""
# Notes each frame in which the page has neither a picture nor a place held for one.
RECORD = """() => {
    const shadows = (root) => [...root.querySelectorAll("*")].map((one) => one.shadowRoot).filter(Boolean);
    const all = (root, wanted) => [...root.querySelectorAll(wanted),
        ...shadows(root).flatMap((one) => all(one, wanted))];
    const isLarge = (one) => {
        const { width, height } = one.getBoundingClientRect();
        return width > 100 && height > 100 && one.checkVisibility({ visibilityProperty: true });
    };
    const isHeld = (one) => isLarge(one) && !all(one, ".explorer").some(isLarge)
        && getComputedStyle(one).backgroundImage.includes("gradient");
    window.frames_ = { seen: 0, empty: 0, held: 0 };
    const look = () => {
        const page = document.querySelector(".st-key-page");
        const held = [...page.querySelectorAll(`[data-testid=stPlotlyChart], [class*=st-key-place-],
            .st-key-explorer, .held`)];
        const isDrawn = all(page, ".main-svg, .explorer canvas").some(isLarge);
        window.frames_.seen += 1;
        if (!isDrawn && held.some(isHeld)) window.frames_.held += 1;
        if (!isDrawn && !held.some(isHeld)) window.frames_.empty += 1;
        window.looking = requestAnimationFrame(look);
    };
    look();
}"""
ENDED = "() => { cancelAnimationFrame(window.looking); return window.frames_; }"


def above(page: Page) -> Any:
    """How many ranks of controls stand above the first picture of the open page, and the things in them."""
    first = page.locator(PICTURE).locator("visible=true")
    pictures = first if first.count() else page.locator(".st-key-page p").locator("visible=true")
    return page.evaluate(ABOVE, [one.element_handle() for one in pictures.all()])


def assert_opens_plainly(page: Page) -> None:
    """The open page has two ranks of controls above its picture, fewer of them beside the map of the
    model, and letters of 13 pixels."""
    page.evaluate(STILL)
    seen = above(page)
    assert seen["ranks"] <= RANKS, seen
    is_mapped = page.locator(".st-key-model-map a").count() > 0
    assert len(seen["things"]) <= (BESIDE_MAP if is_mapped else THINGS), seen
    assert page.evaluate(TOO_SMALL, SMALLEST) == []


def test_a_third_rank_and_small_letters_are_seen(page: Page) -> None:
    rank = "<div style='height:60px'><button>one</button><input type=range></div>"
    page.set_content(
        f"<body>{rank * 3}<div role=radiogroup><button>a</button><button>b</button></div>"
        "<p style='font-size:12px'>small</p><svg><text y='20' font-size='11'>smaller</text></svg>"
        "<p style='font-size:13px'>large enough</p><main>picture</main></body>"
    )
    seen = page.evaluate(ABOVE, [page.locator("main").element_handle()])
    assert (seen["ranks"], len(seen["things"])) == (4, 7)
    assert page.evaluate(TOO_SMALL, SMALLEST) == ["12 px: small", "11 px: smaller"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_controls_are_black_and_streamlits_own_marks_are_not_seen(
    page: Page, open_page: Callable[..., Page], scheme: str
) -> None:
    page.emulate_media(color_scheme=scheme)
    open_page("/layer_norm")
    for name in ("stMainMenu", "stStatusWidget"):
        expect(page.get_by_test_id(name).locator("visible=true")).to_have_count(0)
    assert page.get_by_text("Made with Streamlit").count() == 0
    mark = page.get_by_test_id("stSidebar").locator(".mark")
    expect(mark).to_be_visible()
    assert "svg" in mark.evaluate("mark => getComputedStyle(mark).maskImage")
    ink = page.locator(".stApp").evaluate("app => getComputedStyle(app).color")
    assert mark.evaluate("mark => getComputedStyle(mark).backgroundColor") == ink
    icon = page.locator("link[rel*=icon]").first.get_attribute("href") or ""
    assert icon.startswith("data:image/svg+xml")
    assert [colour for colour in page.evaluate(PALETTE) if is_coloured(colour)] == []


def is_coloured(colour: str) -> bool:
    """Whether a colour as the browser computes it is none of black, white and the greys between."""
    if not colour.startswith("rgb"):
        return False
    channels = [float(one) for one in colour.split("(")[1].rstrip(")").split(",")]
    is_clear = len(channels) > 3 and channels[3] == 0
    return not is_clear and max(channels[:3]) - min(channels[:3]) > 25


@pytest.mark.walk
def test_a_picture_has_its_place_in_each_frame_until_it_is_drawn(
    page: Page, open_page: Callable[..., Page], settle: Callable[..., Page]
) -> None:
    held = 0
    for address, clicks in {
        "positions": [lambda: show(page, "The table"), lambda: show(page, "Word order")],
        "all_heads": [lambda: show(page, "Leave one out"), lambda: show(page, "Maps")],
        "": [
            lambda: page.get_by_text("Divide scores by").click(),
            lambda: open_drawer(page, "carries"),
        ],
        "vectors": [lambda: show(page, "Nearest tokens"), lambda: show(page, "Look-up")],
    }.items():
        open_page(f"/{address}")
        page.evaluate(STILL)
        for at, click in enumerate(clicks):
            page.evaluate(RECORD)
            click()
            settle()
            page.evaluate(STILL)
            frames = page.evaluate(ENDED)
            assert frames["empty"] == 0, (address, at, frames)
            held += frames["held"]
    assert held > 0  # else the look sees no place that is held


def open_drawer(page: Page, name: str) -> None:
    """A drawer of the chosen cell, by its link in the card."""
    page.get_by_test_id("figure").press("Enter")
    page.get_by_test_id("card").get_by_role("link", name=name).click()


@pytest.mark.walk
def test_at_200_per_cent_no_button_lies_on_the_work_bar(
    page: Page, open_page: Callable[..., Page]
) -> None:
    page.set_viewport_size({"width": 720, "height": 450})
    for address in ("", "encoder_decoder"):
        open_page(f"/{address}")
        page.evaluate(STILL)
        keys = page.locator(".st-key-keys").bounding_box()
        assert keys is not None
        inside = page.locator(".st-key-work-bar > *").locator("visible=true").all()
        assert inside
        for box in filter(None, (one.bounding_box() for one in inside)):
            is_beside = (
                box["x"] + box["width"] <= keys["x"] or keys["x"] + keys["width"] <= box["x"]
            )
            is_below = box["y"] >= keys["y"] + keys["height"]
            assert is_beside or is_below or not box["width"], (address, box, keys)
            assert box["x"] + box["width"] <= 720


def test_the_walk_has_one_link_to_each_of_its_pages(
    page: Page, open_page: Callable[..., Page]
) -> None:
    open_page("/tokens")
    links = page.locator(".st-key-model-map a[href]")
    there = [
        link.split("?")[0] for link in links.evaluate_all("all => all.map((one) => one.pathname)")
    ]
    pages = [f"/{entry.address}" for entry in PLACES["Walk"]]
    assert sorted(there) == sorted(["/", *pages])  # attention is Explore


# The letters that are seen and the smaller side of the largest picture, also within components.
SEEN = """() => {
    let letters = 0, largest = 0;
    const look = (root) => {
        for (const one of root.querySelectorAll("*")) {
            if (one.shadowRoot) look(one.shadowRoot);
            const box = one.getBoundingClientRect();
            const isShown = one.checkVisibility({ visibilityProperty: true });
            const isOut = box.width <= 1 || box.top >= innerHeight;
            if (!isShown || isOut || one.matches("style, script")) continue;
            const texts = [...one.childNodes].filter(({ nodeType }) => nodeType === Node.TEXT_NODE);
            letters += texts.reduce((sum, { data }) => sum + data.trim().length, 0);
            const isPicture = one.matches(".js-plotly-plot, canvas, svg, table");
            if (isPicture) largest = Math.max(largest, Math.min(box.width, box.height));
        }
    };
    look(document.querySelector(".stMain"));
    return { letters, largest };
}"""


@pytest.mark.walk
def test_each_line_of_the_frame_has_one_height_and_no_screen_is_blank_for_a_class(
    open_page: Callable[..., Page], subtests: pytest.Subtests
) -> None:
    heights: dict[str, set[int]] = {"bar": set(), "title": set()}
    for entry in (one for one in PAGES if one.file != HOME):
        with subtests.test(page=entry.address):
            page = open_page(f"/{entry.address}")
            for name, part in (
                ("bar", page.get_by_role("textbox", name="Your sentence")),
                ("title", page.get_by_role("heading", level=1)),
            ):
                box = part.bounding_box()
                middle = box["y"] + box["height"] / 2
                both_stacks = entry.address == "encoder_decoder"  # its map has two lines
                if not (name == "title" and both_stacks):
                    heights[name].add(round(middle))
            page.keyboard.press("p")
            page.evaluate(STILL)
            seen = page.evaluate(SEEN)
            assert seen["letters"] > 250 or seen["largest"] > 250
    for name, found in heights.items():
        with subtests.test(line=name):
            assert max(found) - min(found) <= 8, sorted(found)
