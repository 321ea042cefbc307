"""Every screen in two small forms: in the lecture view maps of pairs of tokens are square and pictures end on
the screen; on a phone nothing is wider than it, and the picture is near the top."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, TimeoutError

from tests.legible import picture_top
from viz.state.navigation import PAGES

PROJECTOR = {"width": 1280, "height": 720}
PHONE = {"width": 390, "height": 844}
WALKED = [
    pytest.param(
        page.address,
        id=page.address or "home",
        marks=() if page.address == "head" else pytest.mark.walk,
    )
    for page in PAGES
]
# Of the charts that begin on the upper half of the screen, those that end below it; of maps with as many rows
# as columns, those whose cells are more than a tenth higher than wide, or wider than high.
FAULTS = """() => [...document.querySelectorAll(".stMain .js-plotly-plot")].flatMap((chart) => {
    if (!chart.querySelector(".main-svg")) return ["not drawn"];
    const { top, bottom } = chart.querySelector(".main-svg").getBoundingClientRect();
    const found = top < innerHeight / 2 && bottom > innerHeight ? [`ends at ${bottom}`] : [];
    const { xaxis, yaxis } = chart._fullLayout;
    const long = ({ range: [from, to] }) => Math.abs(to - from);
    if (!chart.querySelector(".heatmaplayer image") || long(xaxis) !== long(yaxis)) return found;
    const { width, height } = chart.querySelector(".nsewdrag").getBoundingClientRect();
    return Math.abs(width / height - 1) > 0.1 ? [...found, `${width} by ${height}`] : found;
})"""
WIDER = """() => {
    const scrolls = (one) => one && !one.matches(".stMain") &&
        (getComputedStyle(one).overflowX !== "visible" || scrolls(one.parentElement));
    return [...document.querySelectorAll(".stMain *")].filter((one) => {
        const { width, right } = one.getBoundingClientRect();
        return width && right > innerWidth + 1 && one.checkVisibility({ visibilityProperty: true })
            && !scrolls(one.parentElement);
    }).map((one) => one.className || one.tagName);
}"""


@pytest.mark.parametrize("address", WALKED)
def test_in_the_lecture_view_pictures_fit(
    page: Page, open_page: Callable[..., Page], address: str
) -> None:
    page.set_viewport_size(PROJECTOR)
    open_page(f"/{address}")
    page.keyboard.press("p")
    try:  # charts follow the size of their place one after the other
        page.wait_for_function(f"() => !({FAULTS})().length")
    except TimeoutError:
        assert page.evaluate(FAULTS) == []
    if address == "head":
        assert page.locator(".js-plotly-plot .heatmaplayer image").count()
        page.keyboard.press("p")
        page.wait_for_function(  # as large again as before
            "() => document.querySelector('.js-plotly-plot .main-svg').getBoundingClientRect().height > 400"
        )


@pytest.mark.parametrize("address", WALKED)
def test_on_a_phone_the_picture_is_near_the_top_and_nothing_is_wider(
    page: Page, open_page: Callable[..., Page], address: str
) -> None:
    page.set_viewport_size(PHONE)
    open_page(f"/{address}")
    assert page.evaluate(WIDER) == []
    assert (picture_top(page) or 0) <= 0.75 * PHONE["height"]
    keys, sentence = (
        page.locator(place).bounding_box() for place in (".st-key-keys", ".st-key-choose-text")
    )
    assert keys
    assert sentence
    assert keys["y"] + keys["height"] <= sentence["y"] + 1
