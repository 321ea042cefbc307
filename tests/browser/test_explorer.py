"""The explorer alone in a real Chromium: each control, what it draws, and what it reports.

The component is mounted in a shadow root as Streamlit does it, with the message that Python sends.
"""

import base64
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from itertools import count

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Browser, Locator, Page, Route, expect

from model.trace import Attention
from tests.viz.explorer.records import labels, record
from viz.explorer import Selection, assets, bundle, payload
from viz.explorer.packing import packed

ADDRESS = "http://explorer.test"
LIGHT = {"background-color": "#ffffff", "secondary-background-color": "#f4f3f6"}
LIGHT |= {"text-color": "#262730", "border-color": "#dad8df", "primary-color": "#6a51a3"}
DARK = {"background-color": "#16161a", "secondary-background-color": "#212127"}
DARK |= {"text-color": "#ececf1", "border-color": "#3a3a43", "primary-color": "#a693d8"}
MOUNT = """async ([html, css]) => {
    window.unmount?.();
    document.querySelector("#place")?.remove();
    const place = document.body.appendChild(document.createElement("div"));
    place.id = "place";
    const shadow = place.attachShadow({ mode: "open" });
    shadow.innerHTML = `<div>${html}<style>${css}</style></div>`;
    const { default: mount } = await import("/explorer.js");
    const reports = window.reports = [];
    const setStateValue = (name, value) => reports.push(value);
    window.send = (block) => {
        const data = Uint8Array.from(atob(block), (letter) => letter.charCodeAt(0));
        window.unmount = mount({ data, parentElement: shadow, setStateValue });
    };
}"""
mounts = count()


class Stage:
    """The mounted explorer: what a test sends it and sees of it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.mount = f"mount-{next(mounts)}"
        page.evaluate(MOUNT, [bundle.skeleton(), bundle.style()])
        self.theme(LIGHT)

    def send(
        self,
        attention: Attention,
        selection: Selection | None = None,
        *,
        baseline: Attention | None = None,
        queries: list[str] | None = None,
        keys: list[str] | None = None,
        revision: int = 0,
        check: float = 3e-7,
    ) -> Locator:
        """What Python sends; returns the explorer once it is drawn."""
        self.post(attention, selection, baseline, queries, keys, revision, check)
        return self.ready()

    def post(
        self,
        attention: Attention,
        selection: Selection | None = None,
        baseline: Attention | None = None,
        queries: list[str] | None = None,
        keys: list[str] | None = None,
        revision: int = 0,
        check: float = 3e-7,
        *,
        asked: Selection | None = None,
    ) -> None:
        """Hands the browser what Python sends; `asked` is the reader's choice, where it counts."""
        selection = selection or Selection(0, "weights", 3, 1)
        asked = asked or selection
        message = payload(
            attention,
            queries=queries or labels(attention.query.shape[1]),
            keys=keys or labels(attention.key.shape[1]),
            head=asked.head,
            stage=asked.stage,
            check=check,
            baseline=baseline,
        )
        extra = {"selection": asdict(selection), "revision": revision, "mount": self.mount}
        block = packed(message | extra | {"assets": assets.addresses()})
        self.page.evaluate("block => window.send(block)", base64.b64encode(block).decode())

    def ready(self) -> Locator:
        expect(self.root).to_have_attribute("data-ready", "true")
        return self.root

    @property
    def root(self) -> Locator:
        return self.page.get_by_test_id("explorer")

    def part(self, name: str) -> Locator:
        return self.page.get_by_test_id(name)

    def expect_cell(self, **names: object) -> None:
        for name, value in names.items():
            expect(self.root).to_have_attribute(f"data-{name}", str(value))

    def drawn(self, panel: int = 0) -> NDArray[np.float64]:
        """The numbers Plotly has drawn, NaN where there is a gap."""
        self.ready()
        rows = self.root.locator(".figure > .plotly").evaluate(
            "(plot, n) => plot.data[n].z.map((row) => Array.from(row, (v) => isNaN(v) ? null : v))",
            panel,
        )
        return np.array(rows, dtype=float)

    def theme(self, colours: dict[str, str]) -> None:
        self.page.evaluate(
            """colours => { for (const [name, value] of Object.entries(colours))
                document.querySelector("#place").style.setProperty(`--st-${name}`, value); }""",
            colours,
        )

    def reports(self) -> list[dict[str, object]]:
        """What was reported to Python, once the delay has passed."""
        self.page.wait_for_timeout(450)
        found: list[dict[str, object]] = self.page.evaluate("window.reports")
        return found


def serve(route: Route) -> None:
    """The page, the script, and the static files at the address where Streamlit has them."""
    path = route.request.url.removeprefix(ADDRESS + "/").split("?")[0]
    if path == "":
        page = '<!doctype html><html><body style="margin:0"></body></html>'
        route.fulfill(body=page, content_type="text/html")
    elif path == "explorer.js":
        route.fulfill(body=bundle.script(), content_type="text/javascript")
    elif path == assets.PLOTLY_ADDRESS:
        route.fulfill(path=assets.PLOTLY)
    elif path.startswith("app/static/"):
        route.fulfill(path=assets.STATIC / path.removeprefix("app/static/"))
    else:
        route.fulfill(status=404)


@pytest.fixture(scope="module")
def new_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Call it for a page at the explorer's address; `without` names a file that cannot be loaded."""
    pages: list[Page] = []

    def new(*, width: int = 1040, without: str | None = None) -> Page:
        page = browser.new_page(viewport={"width": width, "height": 1000})
        page.on("pageerror", lambda error: troubles_of(page).append(str(error)))
        page.route(ADDRESS + "/**", serve)
        if without:
            page.route(f"**/{without}*", lambda route: route.abort())
        page.goto(ADDRESS + "/")
        pages.append(page)
        return page

    yield new
    for page in pages:
        page.close()


troubles: dict[Page, list[str]] = {}


def troubles_of(page: Page) -> list[str]:
    return troubles.setdefault(page, [])


@pytest.fixture(scope="module")
def wide(new_page: Callable[..., Page]) -> Page:
    """One page for most tests: each mounts its own explorer in it."""
    return new_page()


@pytest.fixture(scope="module")
def narrow(new_page: Callable[..., Page]) -> Page:
    """A page as wide as a phone leaves it."""
    return new_page(width=358)


@pytest.fixture
def mounted() -> Iterator[Callable[[Page], Stage]]:
    """Mounts an explorer in a page; at the end it must have raised nothing and shown no NaN."""
    stages: list[Stage] = []

    def mount(page: Page) -> Stage:
        stages.append(Stage(page))
        return stages[-1]

    yield mount
    for stage in stages:
        assert troubles_of(stage.page) == []
        assert "NaN" not in stage.root.inner_text()


@pytest.fixture
def stage(mounted: Callable[[Page], Stage], wide: Page) -> Stage:
    return mounted(wide)


def middle(stage: Stage, row: int, column: int, rows: int, columns: int) -> dict[str, float]:
    """The middle of a cell, from the figure's corner; the frame of the box says where cells lie."""
    box = stage.root.locator(".marks rect").first
    left, top, width, height = (
        float(box.get_attribute(n) or 0) for n in ("x", "y", "width", "height")
    )
    return {"x": left + (column + 0.5) / columns * width, "y": top + (row + 0.5) / rows * height}


def expected(attention: Attention, stage: str, head: int) -> NDArray[np.float32]:
    if stage in ("query", "key", "value", "output"):
        found: NDArray[np.float32] = getattr(attention, stage)[head]
        return found
    matrix = getattr(attention, stage)(head)
    if stage in ("masked", "weights") and attention.mask is not None:
        return np.where(attention.mask, matrix, np.nan)
    return np.asarray(matrix)


STAGES = ("query", "key", "value", "scores", "scaled", "masked", "weights", "output")


def test_every_stage_is_a_plotly_heatmap_of_the_models_numbers(stage: Stage) -> None:
    attention = record(6, 9, kind="cross", mask=np.random.default_rng(0).random((6, 9)) > 0.3)
    stage.send(attention)
    for name in STAGES:
        stage.part(f"stage-{name}").click()
        stage.expect_cell(stage=name, renderer="plotly")
        drawn, numbers = stage.drawn(), expected(attention, name, 0)
        np.testing.assert_allclose(drawn, numbers, rtol=1e-5, atol=1e-5, err_msg=name)
        expect(stage.root.locator(".plotly .heatmaplayer image")).to_have_count(1)
        expect(stage.part(f"stage-{name}")).to_have_attribute("aria-checked", "true")


def test_a_head_is_switched_in_the_browser_and_reported_once(stage: Stage) -> None:
    attention = record(6)
    stage.send(attention)
    stage.part("head-1").click()
    stage.part("head-2").click()
    stage.expect_cell(head=2)
    np.testing.assert_allclose(stage.drawn(), expected(attention, "weights", 2), atol=1e-6)
    expect(stage.part("title")).to_contain_text("L2H2")
    assert stage.reports() == [{"head": 2, "stage": "weights", "query": 3, "key": 1, "revision": 0}]


def test_the_numbers_are_those_of_head_and_layer_whatever_was_drawn_before(stage: Stage) -> None:
    stage.send(record(6))
    other = record(7, layer=5, seed=9)
    stage.send(other, revision=0)
    expect(stage.part("title")).to_contain_text("L5H0")
    np.testing.assert_allclose(stage.drawn(), expected(other, "weights", 0), atol=1e-6)


def test_a_click_chooses_the_cell_under_it(stage: Stage) -> None:
    stage.send(record(6))
    stage.part("figure").click(position=middle(stage, 4, 2, 6, 6))
    stage.expect_cell(query=4, key=2)
    stage.part("stage-value").click()
    stage.ready()
    stage.part("figure").click(position=middle(stage, 5, 7, 6, 8))
    stage.expect_cell(query=4, key=5)


def test_the_arrow_keys_move_the_cell_and_stop_at_the_edges(stage: Stage) -> None:
    stage.send(record(6), Selection(0, "weights", 0, 0))
    stage.part("figure").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowUp", "ArrowLeft", "ArrowLeft"):
        stage.page.keyboard.press(key)
    stage.expect_cell(query=1, key=0)
    expect(stage.part("announcement")).to_contain_text("query 1 “·cat”, key 0 “The”")
    assert len(stage.reports()) == 1


def test_heads_and_stages_are_reached_by_keys_alone(stage: Stage) -> None:
    stage.send(record(6))
    stage.page.keyboard.press("Tab")
    stage.page.keyboard.press("ArrowRight")
    stage.expect_cell(head=1)
    stage.page.keyboard.press("ArrowLeft")
    stage.page.keyboard.press("ArrowLeft")
    stage.expect_cell(head=2)
    stage.page.keyboard.press("Tab")
    stage.page.keyboard.press("Home")
    stage.expect_cell(stage="query")
    stage.page.keyboard.press("End")
    stage.expect_cell(stage="output")


@pytest.mark.parametrize(
    ("control", "key", "focused"),
    [
        ("order-largest", "ArrowRight", "order-index"),
        ("span-layer", "ArrowRight", "span-head"),
        ("side-reads", "ArrowRight", "side-read-by"),
        ("chip-query-3", "ArrowRight", "chip-query-4"),
        ("top-key-2", "Enter", "top-key-2"),
        ("stage-scores", "ArrowLeft", "stage-value"),
    ],
)
def test_a_control_used_by_keys_keeps_the_focus(
    stage: Stage, control: str, key: str, focused: str
) -> None:
    stage.send(record(6), Selection(0, "scores", 3, 1))
    stage.part(control).focus()
    stage.page.keyboard.press(key)
    expect(stage.part(focused)).to_be_focused()


def test_back_to_the_whole_gives_the_focus_to_the_picture(stage: Stage) -> None:
    stage.send(record(65, heads=1))
    stage.part("figure").focus()
    stage.page.keyboard.press("Enter")
    stage.part("whole").focus()
    stage.page.keyboard.press("Enter")
    expect(stage.part("figure")).to_be_focused()


def test_every_control_has_a_name(stage: Stage) -> None:
    stage.send(record(6))
    stage.part("table").locator("summary").click()
    for role in ("button", "radio", "radiogroup", "application", "table"):
        for control in stage.root.get_by_role(role).all():  # type: ignore[arg-type]
            expect(control).not_to_have_accessible_name("")


def test_a_masked_cell_is_called_so_everywhere_and_never_zero(stage: Stage) -> None:
    stage.send(record(6), Selection(0, "weights", 1, 4))
    assert np.isnan(stage.drawn()[1, 4])
    stage.part("figure").hover(position=middle(stage, 1, 4, 6, 6))
    expect(stage.part("tooltip")).to_contain_text("not allowed")
    expect(stage.part("legend")).to_contain_text("not allowed")
    expect(stage.part("chip-query-4")).to_have_attribute("title", "query 4 “·cat”: not allowed")
    stage.part("table").locator("summary").click()
    expect(stage.part("table").locator("tbody tr").nth(1).locator("td").nth(4)).to_have_text(
        "not allowed"
    )
    stage.part("stage-masked").click()
    expect(stage.part("details")).to_contain_text("comes later than")


def test_scores_before_the_mask_show_the_future_too(stage: Stage) -> None:
    stage.send(record(6), Selection(0, "scores", 1, 4))
    assert np.isfinite(stage.drawn()).all()
    expect(stage.part("legend")).not_to_contain_text("not allowed")


def test_a_masked_key_that_still_gets_weight_shows_it(stage: Stage) -> None:
    attention = record(6, fill=-1.0)
    stage.send(attention)
    np.testing.assert_allclose(stage.drawn(), attention.weights(0), atol=1e-6)
    expect(stage.part("legend")).to_contain_text("the weight it gets all the same")
    stage.part("figure").hover(position=middle(stage, 0, 5, 6, 6))
    expect(stage.part("tooltip")).to_contain_text("(masked)")


@pytest.mark.parametrize("name", STAGES)
def test_a_row_whose_every_key_is_masked_is_said_to_be_so(stage: Stage, name: str) -> None:
    mask = np.tri(6, dtype=bool)
    mask[3] = False
    stage.send(record(6, mask=mask), Selection(0, name, 3, 1))
    expect(stage.part("top-keys")).to_contain_text("may look at no key")
    if name == "weights":
        expect(stage.part("details")).to_contain_text("all weights are 0")


def test_one_token_is_enough(stage: Stage) -> None:
    stage.send(record(1, width=2), Selection())
    for name in STAGES:
        stage.part(f"stage-{name}").click()
        assert stage.drawn().shape[0] == 1


def test_equal_tokens_keep_their_own_rows_and_columns(stage: Stage) -> None:
    stage.send(record(5), queries=["the"] * 5, keys=["the"] * 5)
    assert stage.drawn().shape == (5, 5)
    for axis in ("x", "y"):
        ticks = stage.root.locator(f".figure > .plotly .{axis}tick text")
        assert ticks.all_text_contents() == ["the"] * 5


HOSTILE = [
    *("<img src=x onerror=window.hacked=1>", "</script>", "<b>b</b>", "&lt;", "#000001", "$x$"),
    *("\u202eevil", "\n", "", " ", "\ud800", "<a href='https://example.org'>a</a>"),
]


def test_a_token_is_never_markup(stage: Stage) -> None:
    size = len(HOSTILE)
    stage.send(record(size), queries=HOSTILE, keys=HOSTILE)
    for name in STAGES:
        stage.part(f"stage-{name}").click()
        stage.ready()
        stage.part("figure").hover(position=middle(stage, 0, 0, size, size))
    stage.part("table").locator("summary").click()
    assert stage.page.evaluate("window.hacked") is None
    for tag in ("img[src='x']", "a", "b"):
        assert stage.root.locator(tag).count() == 0
    shown = stage.root.locator(".plotly text").all_text_contents()
    assert "<b>b</b>" in shown
    assert "&lt;" in shown
    assert "#\u2060000001" in shown


def test_the_filled_formula_holds_the_cells_own_numbers(stage: Stage) -> None:
    attention = record(6)
    stage.send(attention, Selection(1, "scores", 4, 2))
    products = attention.query[1][4] * attention.key[1][2]
    formula = stage.part("numbers-formula").locator("annotation")
    expect(formula).to_contain_text(f"{attention.scores(1)[4, 2]:.4f}")
    expect(formula).to_contain_text(f"{products[np.abs(products).argmax()]:.4f}")
    terms = stage.part("details").locator(".term:not(.head)")
    expect(terms).to_have_count(8)
    shown = [
        float(text.replace("\u2212", "-"))
        for text in terms.locator(":nth-child(5)").all_inner_texts()
    ]
    assert sorted(map(abs, shown), reverse=True) == list(map(abs, shown))
    np.testing.assert_allclose(sorted(shown), sorted(products), atol=6e-5)
    stage.part("order-index").click()
    stage.ready()
    shown = [
        float(text.replace("\u2212", "-"))
        for text in terms.locator(":nth-child(5)").all_inner_texts()
    ]
    np.testing.assert_allclose(shown, products, atol=6e-5)
    stage.part("stage-weights").click()
    expect(formula).to_contain_text(f"{attention.weights(1)[4, 2]:.4f}")
    stage.part("stage-output").click()
    expect(formula).to_contain_text(f"{attention.context(1)[4, 0]:.4f}")


def test_the_top_keys_are_the_largest_weights_and_can_be_chosen(stage: Stage) -> None:
    attention = record(6)
    stage.send(attention, Selection(0, "weights", 5, 0))
    order = np.argsort(-attention.weights(0)[5], kind="stable")[:5]
    items = stage.part("top-keys").get_by_role("button")
    expect(items).to_have_count(5)
    for item, key in zip(items.all(), order, strict=True):
        expect(item).to_contain_text(f"{attention.weights(0)[5, key]:.4f}")
    items.nth(3).click()
    stage.expect_cell(query=5, key=int(order[3]))


def test_the_sentence_reads_and_is_read(stage: Stage) -> None:
    attention = record(6)
    stage.send(attention, Selection(0, "weights", 3, 1))
    stage.part("chip-query-5").click()
    stage.expect_cell(query=5, key=1)
    weights = attention.weights(0)
    expect(stage.part("chip-query-2")).to_contain_text(f"{weights[5, 2]:.2f}")
    stage.part("side-read-by").click()
    expect(stage.part("chip-key-5")).to_contain_text(f"{weights[5, 1]:.2f}")
    stage.part("chip-key-2").click()
    stage.expect_cell(query=5, key=2)
    expect(stage.part("chip-key-4")).to_contain_text(f"{weights[4, 2]:.2f}")


def test_cross_attention_has_a_line_for_queries_and_one_for_keys(stage: Stage) -> None:
    attention = record(4, 7, kind="cross")
    stage.send(attention, Selection(0, "weights", 1, 6))
    expect(stage.part("chips-query").get_by_role("radio")).to_have_count(4)
    chip = stage.part("chips-key").locator(".chip").nth(6)
    expect(chip).to_contain_text(f"{attention.weights(0)[1, 6]:.2f}")
    stage.part("side-read-by").click()
    stage.part("chip-key-3").click()
    stage.expect_cell(query=1, key=3)


def test_a_selection_of_python_counts_only_under_a_new_revision(stage: Stage) -> None:
    attention = record(6)
    stage.send(attention)
    stage.part("head-2").click()
    stage.send(attention, Selection(0, "weights", 3, 1), revision=0)
    stage.expect_cell(head=2)
    stage.send(attention, Selection(1, "key", 0, 5), revision=1)
    stage.expect_cell(head=1, stage="key", query=0, key=5)


def test_a_choice_survives_another_layer_as_far_as_it_exists(stage: Stage) -> None:
    stage.send(record(6), Selection(2, "scores", 5, 4))
    stage.send(record(3, heads=2, seed=3), Selection(2, "scores", 5, 4))
    stage.expect_cell(head=1, stage="scores", query=2, key=2)


def test_the_check_tells_a_true_output_from_a_wrong_one(stage: Stage) -> None:
    attention = record(6)
    stage.send(attention)
    expect(stage.part("check")).to_contain_text("✓")
    expect(stage.part("check")).to_contain_text("3e\u22127")
    wrong = attention.output.copy()
    wrong[0, 2, 3] += 0.02
    stage.send(replace(attention, output=wrong))
    expect(stage.part("check")).to_contain_text("✗")
    expect(stage.part("check")).to_contain_text("2e\u22122")


def test_an_ablated_head_is_marked(stage: Stage) -> None:
    stage.send(record(6, ablated=(1,)))
    expect(stage.part("head-1")).to_have_accessible_name("Head 1, its output is set to zero")


def test_the_table_has_the_numbers_under_their_tokens(stage: Stage) -> None:
    attention = record(6)
    stage.send(attention, Selection(0, "scores", 0, 0))
    assert stage.part("table").locator("td").count() == 0
    stage.part("table").locator("summary").click()
    expect(stage.part("table").locator("tbody td")).to_have_count(36)
    cells = stage.part("table").locator("tbody td").all_inner_texts()
    shown = np.array([float(cell.replace("\u2212", "-")) for cell in cells]).reshape(6, 6)
    np.testing.assert_allclose(shown, attention.scores(0), atol=6e-5)
    expect(stage.part("table").locator("thead th").nth(4)).to_have_text("4 ·cat")


def test_the_theme_is_followed_without_a_new_message(stage: Stage) -> None:
    stage.send(record(6))
    light = stage.root.locator(".figure > .plotly").evaluate(
        "plot => plot.data[0].colorscale[0][1]"
    )
    stage.theme(DARK)
    stage.send(record(6))
    dark = stage.root.locator(".figure > .plotly").evaluate("plot => plot.data[0].colorscale[0][1]")
    assert light.replace(" ", "") == "rgb(255,255,255)"
    assert dark.replace(" ", "") == "rgb(22,22,26)"


def test_a_place_that_is_hidden_at_first_is_drawn_once_it_shows(stage: Stage) -> None:
    stage.page.evaluate("document.querySelector('#place').style.display = 'none'")
    with pytest.raises(AssertionError):
        expect(stage.root).to_have_attribute("data-ready", "true", timeout=1)
    stage.post(record(6), Selection())
    stage.page.evaluate("document.querySelector('#place').style.display = 'block'")
    assert stage.drawn().shape == (6, 6)


def test_without_plotly_the_picture_is_drawn_all_the_same(
    mounted: Callable[[Page], Stage], new_page: Callable[..., Page]
) -> None:
    stage = mounted(new_page(without="plotly.min.js"))
    stage.send(record(6))
    stage.expect_cell(renderer="canvas")
    expect(stage.part("notice")).to_contain_text("Plotly could not be loaded")
    stage.part("figure").click(position=middle(stage, 5, 2, 6, 6))
    stage.expect_cell(query=5, key=2)


def test_without_katex_the_formula_is_plain_text(
    mounted: Callable[[Page], Stage], new_page: Callable[..., Page]
) -> None:
    stage = mounted(new_page(without="katex.min.js"))
    stage.send(record(6), Selection(0, "scores", 4, 2))
    expect(stage.part("formula")).to_have_text("score_ij = q_i · k_j = sum over c of q_ic k_jc")
    expect(stage.part("numbers-formula")).to_contain_text("query 4")


def test_katexs_fonts_are_known_to_the_document_once(stage: Stage) -> None:
    stage.send(record(6))
    expect(stage.part("formula").locator(".katex")).to_be_visible()
    faces = stage.page.evaluate(
        "[...document.fonts].map((face) => face.family + face.weight + face.style)"
    )
    assert len(faces) == len(set(faces)) > 10
    assert (
        stage.page.evaluate("document.fonts.load('16px KaTeX_Main').then((faces) => faces.length)")
        > 0
    )


def dark_pixels(stage: Stage, layer: str) -> int:
    """How many pixels of a canvas are painted."""
    return int(
        stage.root.locator(f"canvas.{layer}").evaluate(
            """canvas => { const { data } = canvas.getContext("2d")
                .getImageData(0, 0, canvas.width, canvas.height);
                let count = 0; for (let n = 3; n < data.length; n += 4) count += data[n] > 0;
                return count; }"""
        )
    )


@pytest.mark.parametrize(("size", "words"), [(65, "Every position"), (600, "One cell = 3 × 3")])
def test_a_long_text_is_an_overview_and_a_click_opens_an_exact_window(
    stage: Stage, size: int, words: str
) -> None:
    attention = record(size, heads=1)
    stage.send(attention, Selection(0, "weights", 0, 0))
    stage.expect_cell(renderer="canvas")
    expect(stage.part("window")).to_contain_text(words)
    assert dark_pixels(stage, "own") > 50_000
    stage.part("figure").click(position=middle(stage, size - 5, size // 2, size, size))
    expect(stage.part("window")).to_contain_text(f"Rows {size - 64}–{size - 1}")
    query, key = (int(stage.root.get_attribute(f"data-{n}") or 0) for n in ("query", "key"))
    assert (query, key) == pytest.approx((size - 5, size // 2), abs=1)
    stage.part("figure").focus()
    stage.page.keyboard.press("ArrowDown")
    stage.expect_cell(query=query + 1)
    weight = attention.weights(0)[query + 1, key]
    expect(stage.part("announcement")).to_contain_text(f"{weight:.4f}"[:5])
    stage.part("whole").click()
    expect(stage.part("window")).to_contain_text(words)


def test_the_window_follows_the_chosen_cell(stage: Stage) -> None:
    stage.send(record(100, heads=1), Selection(0, "scores", 63, 0))
    stage.part("figure").focus()
    stage.page.keyboard.press("Enter")
    expect(stage.part("window")).to_contain_text("Rows 31–94")
    stage.part("chip-query-99").click()
    expect(stage.part("window")).to_contain_text("Rows 36–99")
    stage.part("figure").focus()
    stage.page.keyboard.press("Escape")
    expect(stage.part("window")).to_contain_text("Every position")


def test_the_table_of_a_long_text_is_a_window_around_the_cell(stage: Stage) -> None:
    stage.send(record(100, heads=1), Selection(0, "scores", 99, 50))
    stage.part("table").locator("summary").click()
    expect(stage.part("table").locator("tbody tr")).to_have_count(64)
    expect(stage.part("table").locator("caption")).to_contain_text("rows 36–99, columns 18–81")


def test_the_colours_span_all_heads_or_the_shown_one(stage: Stage) -> None:
    attention = record(6)
    query, key, value = (array.copy() for array in attention.vectors)
    query[2] *= 9
    attention = replace(attention, vectors=(query, key, value))
    stage.send(attention, Selection(0, "scores", 3, 1))

    def end() -> float:
        return float(stage.root.locator(".figure > .plotly").evaluate("plot => plot.data[0].zmax"))

    assert end() == pytest.approx(
        max(np.abs(attention.scores(h)).max() for h in range(3)), rel=1e-5
    )
    stage.part("span-head").click()
    stage.ready()
    assert end() == pytest.approx(np.abs(attention.scores(0)).max(), rel=1e-5)
    stage.part("stage-weights").click()
    stage.ready()
    assert end() == 1
    expect(stage.part("span-head")).to_have_count(0)


def test_a_head_that_was_not_sent_is_asked_for_at_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    attention = record(6, heads=4)
    monkeypatch.setattr("viz.explorer.message.BUDGET", 2 * 4 * attention.query[0].nbytes)
    stage.send(attention, Selection(0, "weights", 3, 1))
    stage.part("head-3").click()
    expect(stage.part("notice")).to_have_text("Fetching head 3 …")
    stage.page.wait_for_function("window.reports.length === 1", timeout=200)
    stage.post(attention, asked=Selection(3))
    stage.expect_cell(head=3)
    np.testing.assert_allclose(stage.drawn(), expected(attention, "weights", 3), atol=1e-6)


def test_values_of_a_large_layer_follow_when_a_stage_shows_them(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    attention = record(6, heads=2)
    monkeypatch.setattr("viz.explorer.message.LIGHT", 0)
    stage.send(attention)
    expect(stage.part("check")).to_contain_text("✓")
    expect(stage.part("check")).to_contain_text("summed over the dimensions")
    stage.part("stage-output").click()
    expect(stage.part("notice")).to_have_text("Fetching the values of head 0 …")
    stage.page.wait_for_function("window.reports.length === 1", timeout=200)
    stage.post(attention, asked=Selection(0, "output", 3, 1))
    stage.expect_cell(stage="output")
    np.testing.assert_allclose(stage.drawn(), attention.output[0], atol=1e-6)
    expect(stage.part("check")).not_to_contain_text("summed")
    stage.post(attention)  # the answer to an older report, without values: they stay
    stage.part("head-1").click()
    stage.ready()
    np.testing.assert_allclose(stage.drawn(), attention.output[1], atol=1e-6)


def test_a_wrong_output_shows_in_its_sums_before_the_values_are_there(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("viz.explorer.message.LIGHT", 0)
    attention = record(6)
    wrong = attention.output.copy()
    wrong[0, 2, 3] += 0.02
    stage.send(replace(attention, output=wrong))
    expect(stage.part("check")).to_contain_text("✗")


def test_the_same_message_again_draws_nothing_anew(stage: Stage) -> None:
    stage.send(record(6))
    stage.root.evaluate("root => root.querySelector('.title').textContent = 'untouched'")
    stage.send(record(6))
    expect(stage.part("title")).to_have_text("untouched")


def changed_and_baseline() -> tuple[Attention, Attention]:
    baseline = record(6)
    return replace(baseline, scale=1.0, look_ahead=False, own_mask=None), baseline


def test_baseline_changed_and_difference_lie_side_by_side(stage: Stage) -> None:
    changed, baseline = changed_and_baseline()
    stage.send(changed, Selection(0, "weights", 4, 2), baseline=baseline)
    panels = [stage.drawn(n) for n in range(3)]
    np.testing.assert_allclose(panels[0], expected(baseline, "weights", 0), atol=1e-6)
    np.testing.assert_allclose(panels[1], changed.weights(0), atol=1e-6)
    np.testing.assert_allclose(panels[2], changed.weights(0) - baseline.weights(0), atol=1e-6)
    for words in ("baseline: unchanged run", "changed run", "changed − baseline"):
        expect(stage.root.locator(".caption", has_text=words).first).to_be_visible()
    expect(stage.part("panel")).to_contain_text("The changed run, number by number")


def test_the_effect_is_given_before_and_after_for_the_row_and_on_average(stage: Stage) -> None:
    changed, baseline = changed_and_baseline()
    stage.send(changed, Selection(0, "weights", 4, 2), baseline=baseline)
    rows = stage.part("effect").locator("tbody tr")

    def entropy(weights: NDArray[np.float32]) -> NDArray[np.float64]:
        full = weights.astype(np.float64)
        return -(full * np.log(np.where(full > 0, full, 1))).sum(-1)

    for row, measure in {
        0: lambda run: run.weights(0)[4, 2],
        1: lambda run: entropy(run.weights(0))[4],
        2: lambda run: run.weights(0)[4].max(),
        3: lambda run: entropy(run.weights(0)).mean(),
        4: lambda run: run.weights(0).max(-1).mean(),
    }.items():
        before, after = measure(baseline), measure(changed)
        shown = [
            text.replace("\u2212", "-") for text in rows.nth(row).locator("td").all_inner_texts()
        ]
        np.testing.assert_allclose(
            [float(text) for text in shown], [before, after, after - before], atol=6e-5
        )


def test_a_cell_that_one_run_masks_has_no_difference_of_masked_scores(stage: Stage) -> None:
    changed, baseline = changed_and_baseline()
    stage.send(changed, Selection(0, "masked", 1, 4), baseline=baseline)
    assert np.isnan(stage.drawn(2)[1, 4])
    assert np.isfinite(stage.drawn(2)[4, 1])
    stage.part("figure").hover(position=middle(stage, 1, 4, 6, 6))
    expect(stage.part("tooltip")).to_contain_text("baseline: not allowed")


def test_equal_runs_are_said_to_be_equal(stage: Stage) -> None:
    baseline = record(6)
    stage.send(baseline, Selection(0, "scores", 1, 4), baseline=baseline)
    expect(stage.part("legend")).to_contain_text("both runs are equal here")


def test_without_a_baseline_there_is_one_picture_again(stage: Stage) -> None:
    changed, baseline = changed_and_baseline()
    stage.send(changed, baseline=baseline)
    stage.send(baseline)
    assert stage.root.locator(".figure > .plotly").evaluate("plot => plot.data.length") == 1
    expect(stage.part("effect")).to_be_hidden()


@pytest.mark.parametrize("size", [6, 64, 100])
@pytest.mark.parametrize("compared", [False, True])
def test_nothing_is_wider_than_a_phone(
    mounted: Callable[[Page], Stage], narrow: Page, size: int, compared: bool
) -> None:
    stage = mounted(narrow)
    attention = record(size, heads=12)
    stage.send(attention, baseline=attention if compared else None)
    for name in STAGES:
        stage.part(f"stage-{name}").click()
        stage.ready()
        assert stage.page.evaluate("document.documentElement.scrollWidth") <= 358, name
        assert float(stage.root.locator(".figure").evaluate("figure => figure.offsetWidth")) <= 358


def test_the_picture_and_its_numbers_can_be_saved(stage: Stage) -> None:
    attention = record(6)
    stage.send(attention, Selection(1, "weights", 3, 1))
    files = {}
    for ending in ("png", "svg", "csv"):
        with stage.page.expect_download() as download:
            stage.part(f"save-{ending}").click()
        assert download.value.suggested_filename == f"attention-L2H1-weights.{ending}"
        files[ending] = download.value.path().read_bytes()
    assert files["png"].startswith(b"\x89PNG")
    assert b"Weights of L2H1" in files["svg"]
    lines = files["csv"].decode().splitlines()
    assert lines[0].startswith('"query \\ key","0 The","1 ·cat"')
    last = [float(cell) for cell in lines[6].split(",")[1:]]
    np.testing.assert_allclose(last, attention.weights(1)[5], rtol=1e-6)
    assert lines[1].split(",")[2:] == [""] * 5


def test_a_place_that_closes_leaves_nothing_running(stage: Stage) -> None:
    stage.send(record(6))
    stage.part("head-1").click()
    stage.page.evaluate("window.unmount()")
    assert stage.reports() == []


def test_a_choice_not_yet_reported_is_kept_when_the_place_is_mounted_anew(stage: Stage) -> None:
    attention = record(6)
    stage.send(attention)
    stage.part("head-2").click()
    stage.page.evaluate("window.unmount()")
    stage.send(attention)
    stage.expect_cell(head=2)
    assert [report["head"] for report in stage.reports()] == [2]


def test_the_message_is_as_small_as_its_numbers() -> None:
    attention = record(64, heads=12, width=64)
    message = payload(attention, queries=labels(64), keys=labels(64), head=0, check=0.0)
    numbers = 4 * 12 * 64 * 64 * 4
    assert len(packed(message)) < numbers + 40_000
    assert math.isclose(attention.weights(0).sum(), 64, rel_tol=1e-4)
