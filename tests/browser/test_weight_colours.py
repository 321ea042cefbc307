"""A weight has one colour wherever it is drawn: read from pixels, held against the theme's stops."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from tests import chromium
from tests.browser import known_weights
from tests.browser.conftest import wait_until_settled
from tests.browser.controls import pick_head
from tests.browser.explorer.stage import ADDRESS, DARK, LIGHT, Stage, serve
from tests.browser.known_weights import WEIGHTS
from tests.legible import STILL
from tests.server import HEALTHY, serving
from tests.viz.explorer.records import labels, weighing
from viz.explorer import Selection
from viz.notation.theme import QUANTITIES, QuantityName
from viz.saving.offline_page import head_picture, picture_figures, standalone

pytestmark = pytest.mark.walk

Theme = Literal["light", "dark"]
Colours = NDArray[np.float64]  # (…, channel)
THEMES: tuple[Theme, ...] = ("light", "dark")
PAGES = {"light": "#FFFFFF", "dark": "#121215"}  # backgrounds: of .streamlit/config.toml
ROUNDING = 2  # of 255: a canvas has 256 colours, and each channel is rounded


def channels(colour: str) -> Colours:
    return np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)], dtype=float)


def on_the_scale(values: Colours, quantity: QuantityName, theme: Theme, page: str) -> Colours:
    """What the theme's stops say of shares 0-1, the page's background at its place among them."""
    stops = getattr(QUANTITIES[quantity], theme)
    colours = np.array([channels(colour or page) for _, colour in stops])
    places = [place for place, _ in stops]
    return np.stack([np.interp(values, places, channel) for channel in colours.T], -1)


def hold(drawn: Colours, theme: Theme, page: str) -> None:
    """The known weights have the colours of the scale, and more weight is further from the page."""
    expected = on_the_scale(WEIGHTS, "weight", theme, page)
    np.testing.assert_allclose(drawn, expected, atol=ROUNDING)
    away = np.abs(drawn - channels(page)).sum(-1).ravel()
    rising = away[np.argsort(WEIGHTS.ravel(), kind="stable")]
    few = len(rising) - 5  # 0 and 5e-5 look alike: nothing
    assert rising[:few].max() <= ROUNDING
    assert (np.diff(rising[few - 1 :]) > 10).all()


def cells(png: bytes, theme: Theme) -> Colours:
    """(query, key, channel): the colours of the known weights' cells in any picture of them.

    The cell of weight 1, the only large area of its colour, says where they all lie.
    """
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), dtype=float)
    full = channels(getattr(QUANTITIES["weight"], theme)[-1][1])
    found = np.abs(pixels - full).max(-1) <= ROUNDING
    (top, down), (left, across) = (extent(found.sum(axis)) for axis in (1, 0))
    down, across = down + 1, across + 1  # the edges are mixed with what lies beside
    beside = max(1.0, 0.15 * across), max(1.0, 0.15 * down)  # the numbers stand in the middle
    rows = [int(top + (row - 1) * down + beside[1]) for row in range(2)]
    columns = [int(left + column * across + beside[0]) for column in range(6)]
    return pixels[np.ix_(rows, columns)]


def extent(count: NDArray[np.int_]) -> tuple[int, int]:
    """Start and length of where most of the counted pixels lie: the cell, before the end of the scale."""
    where = np.flatnonzero(count > count.max() / 2)
    (cell, *_) = np.split(where, np.flatnonzero(np.diff(where) > 1) + 1)
    return int(cell[0]), len(cell)


@pytest.fixture(scope="module")
def drawn_by_streamlit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that draws the known weights."""
    log = tmp_path_factory.mktemp("known") / "server.log"
    program = ("streamlit", "run", known_weights.__file__)
    with serving(log, program=program, until=HEALTHY) as server:
        yield server.address


@pytest.mark.xdist_group("known weights")  # one worker, one server
@pytest.mark.parametrize("theme", THEMES)
def test_streamlits_pictures_and_the_player(
    browser: Browser, drawn_by_streamlit: str, theme: Theme
) -> None:
    page = chromium.new_page(browser, color_scheme=theme, viewport={"width": 1000, "height": 1400})
    page.goto(drawn_by_streamlit)
    wait_until_settled(page)
    for place in (".st-key-heatmap", ".st-key-grid"):
        picture = page.locator(f"{place} .js-plotly-plot")
        picture.locator(".heatmaplayer image").first.wait_for()
        page.evaluate(STILL)
        hold(cells(picture.screenshot(), theme), theme, PAGES[theme])
    expect(page.get_by_test_id("player")).to_have_attribute("data-ready", "true")
    hold(cells(page.get_by_test_id("map").screenshot(), theme), theme, PAGES[theme])
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save this picture (PNG)").click()
    hold(cells(saved.value.path().read_bytes(), theme), theme, PAGES[theme])
    page.close()


@pytest.fixture
def explorer(browser: Browser) -> Iterator[Callable[..., Stage]]:
    """Call it for an explorer of the known weights; without Plotly it draws on its own canvas."""
    pages: list[Page] = []

    def shown(theme: Theme, *, by: Literal["plotly", "canvas"]) -> Stage:
        page = chromium.new_page(browser, viewport={"width": 1040, "height": 1000})
        pages.append(page)
        page.route(ADDRESS + "/**", serve)
        if by == "canvas":
            page.route("**/plotly.min.js*", lambda route: route.abort())
        page.goto(ADDRESS + "/")
        stage = Stage(page)
        stage.theme(LIGHT if theme == "light" else DARK)
        stage.send(
            weighing(WEIGHTS), Selection(0, "weights", 0, 4), queries=labels(2), keys=labels(6)
        )
        stage.expect_cell(renderer=by, painted="true")
        return stage

    yield shown
    for page in pages:
        page.close()


@pytest.mark.parametrize("by", ["plotly", "canvas"])
@pytest.mark.parametrize("theme", THEMES)
def test_the_explorer_and_its_files(
    explorer: Callable[..., Stage], theme: Theme, by: Literal["plotly", "canvas"]
) -> None:
    stage = explorer(theme, by=by)
    ground = (LIGHT if theme == "light" else DARK)["background-color"]
    hold(cells(stage.part("figure").screenshot(), theme), theme, ground)
    stage.part("more").click()
    for ending in ("png", "svg"):
        with stage.page.expect_download() as saved:
            stage.part(f"save-{ending}").click()
        hold(cells(as_png(stage.page, saved.value.path(), ending), theme), theme, ground)


MAPS = """button => {
    const canvas = button.querySelector("canvas");
    return [...canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data];
}"""
DRAWN = (
    """plot => plot.data[0].z.map(row => Array.from(row, value => isNaN(value) ? null : value))"""
)


@pytest.mark.parametrize("theme", THEMES)
def test_the_small_maps_of_the_heads(
    page: Page, open_page: Callable[..., Page], theme: Theme
) -> None:
    page.emulate_media(color_scheme=theme)
    open_page("/")
    pick_head(page, 3)
    expect(page.get_by_test_id("explorer")).to_have_attribute("data-head", "3")
    expect(page.get_by_test_id("explorer")).to_have_attribute("data-ready", "true")
    weights = np.array(page.locator(".figure > .plotly").evaluate(DRAWN), dtype=float)
    pixels = np.array(page.get_by_test_id("head-3").evaluate(MAPS), dtype=float)
    drawn, seen = pixels.reshape(*weights.shape, 4), np.isfinite(weights)
    np.testing.assert_array_equal(drawn[..., 3] > 0, seen)
    expected = on_the_scale(weights[seen], "weight", theme, PAGES[theme])
    np.testing.assert_allclose(drawn[seen][:, :3], expected, atol=ROUNDING)


def as_png(page: Page, path: Path, ending: str) -> bytes:
    """A saved picture as pixels; the browser draws an SVG."""
    if ending == "png":
        return path.read_bytes()
    drawn = chromium.new_page(page.context.browser, viewport={"width": 1100, "height": 900})
    drawn.set_content(path.read_text(encoding="utf-8"))
    png = drawn.screenshot()
    drawn.close()
    return png


@pytest.mark.parametrize("theme", THEMES)
def test_a_page_that_was_saved_is_light_in_any_browser(
    browser: Browser, theme: Theme, tmp_path: Path
) -> None:
    picture = head_picture(
        weighing(WEIGHTS), None, head=0, stage="weights", queries=labels(2), keys=labels(6)
    )
    (tmp_path / "page.html").write_bytes(standalone("weights", "", picture_figures(picture)))
    page = chromium.new_page(browser, color_scheme=theme)
    page.goto((tmp_path / "page.html").as_uri())
    page.locator(".heatmaplayer image").first.wait_for()
    hold(cells(page.locator(".picture").screenshot(), "light"), "light", PAGES["light"])
    for ending in ("png", "svg"):
        with page.expect_download() as saved:
            page.get_by_role("button", name=ending.upper()).click()
        drawn = as_png(page, saved.value.path(), ending)
        hold(cells(drawn, "light"), "light", PAGES["light"])
    page.close()


PLACES = """(plot, last) => {
    const { xaxis, yaxis } = plot._fullLayout;
    const traces = plot._fullData.filter((one) =>
        one.type === "heatmap" && one.colorscale.at(-1)[1].toUpperCase() === last);
    const beside = (axis, cell) => axis._offset + axis.l2p(cell - 0.25);  // not its edge, nor a number
    return traces.flatMap(({ z, zmax }) => Array.from(z).flatMap((row, i) => Array.from(row, (value, j) =>
        Number.isFinite(value) ? [value / zmax, beside(xaxis, j), beside(yaxis, i)] : null)))
        .filter(Boolean);
}"""


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(("path", "view"), [
    ("/compare", {"show": "Untrained"}),
    ("/all_heads", {"show": "Word to word", "head": 3}),
    ("/compare", {"show": "Averages"}),
])  # fmt: skip
def test_every_weight_of_a_page_has_the_colour_of_the_scale(
    page: Page, open_page: Callable[..., Page], theme: Theme, path: str, view: dict[str, object]
) -> None:
    page.emulate_media(color_scheme=theme)
    open_page(path, **view)
    last = str(getattr(QUANTITIES["weight"], theme)[-1][1])
    page.locator(".js-plotly-plot .heatmaplayer image").first.wait_for()
    page.evaluate(STILL)
    found = 0
    for plot in page.locator(".js-plotly-plot:visible").all():
        places = np.array(plot.evaluate(PLACES, last))
        if not places.size:
            continue
        pixels = np.asarray(Image.open(io.BytesIO(plot.screenshot())).convert("RGB"), dtype=float)
        across, down = places[:, 1:].astype(int).T
        expected = on_the_scale(places[:, 0], "weight", theme, PAGES[theme])
        np.testing.assert_allclose(pixels[down, across], expected, atol=ROUNDING)
        found += len(places)
    assert found >= 36
