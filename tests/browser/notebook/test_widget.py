"""The widget in a page without Jupyter: what is chosen in the picture is chosen in Python, and the other way
round; its numbers are the trace's own, and no request leaves the page."""

import re
from collections.abc import Callable
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Locator, expect

from model import Intervention, Trace, load_model
from tests.browser.notebook.notebook import DARK, Notebook
from viz.notebook import AttentionExplorer, compare, show
from viz.notebook import run as shown

TEXT = "The cat sat on the mat because it was tired"
PLACE, OTHER = "decoder.1.self", "decoder.3.self"


@pytest.fixture(scope="module")
def trace() -> Trace:
    return load_model("house-gpt").trace(TEXT)


def chosen(widget: AttentionExplorer) -> tuple[str, int, str, int, int]:
    return widget.place, widget.head, widget.stage, widget.query, widget.key


def expect_told(notebook: Notebook, widget: AttentionExplorer, **wanted: object) -> None:
    """Waits until the browser has told Python of a choice."""
    notebook.wait_until(
        """([id, wanted]) => Object.entries(wanted).every(([name, value]) =>
            window.told.some(({ state }) => state?.[name] === value))""",
        arg=[widget.model_id, wanted],
    )
    for name, value in wanted.items():
        assert getattr(widget, name) == value


def expect_shown(explorer: Locator, **wanted: object) -> None:
    for name, value in wanted.items():
        expect(explorer).to_have_attribute(f"data-{name}", str(value))
    expect(explorer).to_have_attribute("data-ready", "true")


def test_what_is_chosen_in_the_picture_is_chosen_in_python(
    open_notebook: Callable[..., Notebook], trace: Trace
) -> None:
    notebook = open_notebook()
    widget = show(trace, place=PLACE, head=7, query=9, key=8)
    explorer = notebook.show(widget)
    page = notebook.page
    page.get_by_test_id("head-picker").click()
    page.get_by_test_id(f"{OTHER}-2").click()
    expect_told(notebook, widget, place=OTHER, head=2)
    expect(explorer.get_by_test_id("readout")).to_contain_text("L3H2")
    page.keyboard.press("Escape")
    explorer.get_by_test_id("stage-scores").click()
    expect_told(notebook, widget, stage="scores")
    explorer.get_by_test_id("figure").press("ArrowUp")
    expect_told(notebook, widget, query=8)
    attention = trace.find(OTHER)
    assert chosen(widget) == (OTHER, 2, "scores", 8, 8)
    assert widget.value == attention.scores(2)[8, 8]
    assert widget.weight == attention.weights(2)[8, 8]
    expect(explorer.locator(".readout")).to_contain_text(f"{widget.value:.4f}".replace("-", "−"))


def test_what_python_sets_moves_the_picture(
    open_notebook: Callable[..., Notebook], trace: Trace
) -> None:
    notebook = open_notebook()
    widget = show(trace, place=PLACE, query=9, key=0)
    explorer = notebook.show(widget)
    widget.place, widget.head, widget.stage, widget.query, widget.key = OTHER, 5, "masked", 7, 3
    notebook.deliver(widget)
    expect_shown(explorer, head=5, stage="masked", query=7, key=3)
    expect(explorer.get_by_test_id("readout")).to_contain_text("L3H5")
    expect(notebook.page.get_by_test_id("head-picker")).to_have_text(re.compile("L3H5"))
    assert chosen(widget) == (OTHER, 5, "masked", 7, 3)


def test_the_numbers_in_the_page_are_the_traces_own(
    open_notebook: Callable[..., Notebook], trace: Trace
) -> None:
    notebook = open_notebook()
    explorer = notebook.show(show(trace, place=PLACE, head=6, stage="scores"))
    explorer.get_by_test_id("more").click()
    explorer.get_by_test_id("open-table").click()
    rows = explorer.get_by_test_id("table").locator("tbody tr")
    attention = trace.find(PLACE)
    for stage in ("scores", "weights", "query", "output"):
        explorer.get_by_test_id(f"stage-{stage}").click()
        expect_shown(explorer, stage=stage)
        matrix = getattr(attention, stage)
        expected = matrix(6) if callable(matrix) else matrix[6]
        expect(rows).to_have_count(len(expected))
        cells = [
            float(text.replace("−", "-"))
            for text in rows.nth(4).locator("td").all_inner_texts()
            if text[-1].isdigit()
        ]
        assert cells == pytest.approx(expected[4][: len(cells)].tolist(), abs=6e-5)
        assert len(cells) >= 5


def test_a_large_layer_comes_from_python_when_it_is_chosen(
    open_notebook: Callable[..., Notebook], trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown, "TOGETHER", 0)
    monkeypatch.setattr("viz.explorer.message.LIGHT", 0)
    monkeypatch.setattr("viz.notebook.widget.SMALL_MAPS", 0)
    notebook = open_notebook()
    widget = show(trace, place=PLACE)
    explorer = notebook.show(widget, has_library=False)  # Python sends that too
    page = notebook.page
    page.get_by_test_id("head-picker").click()
    page.get_by_test_id(f"{OTHER}-2").click()
    expect(explorer.get_by_test_id("readout")).to_contain_text("L3H2")
    page.keyboard.press("Escape")
    explorer.get_by_test_id("stage-value").click()
    expect_shown(explorer, stage="value", head=2)
    assert chosen(widget)[:3] == (OTHER, 2, "value")
    asked = [
        message["content"]["kind"]
        for message in page.evaluate("window.told")
        if "content" in message
    ]
    assert asked == ["library", "maps"]


def test_a_saved_notebook_shows_and_switches_without_a_kernel(
    open_notebook: Callable[..., Notebook], trace: Trace
) -> None:
    widget = show(trace, place=PLACE, head=7, stage="scores", query=4, key=1)
    notebook = open_notebook(kernel=False)
    explorer = notebook.reopen(widget.model_id, notebook.saved(widget))
    expect_shown(explorer, head=7, stage="scores", query=4, key=1)
    notebook.page.get_by_test_id("head-picker").click()
    notebook.page.get_by_test_id(f"{OTHER}-2").click()
    expect(explorer.get_by_test_id("readout")).to_contain_text("L3H2")
    expect_shown(explorer, head=2)


@pytest.mark.walk
def test_without_a_kernel_a_layer_that_was_not_saved_says_what_it_needs(
    open_notebook: Callable[..., Notebook], trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown, "TOGETHER", 0)
    widget = show(trace, place=PLACE)
    notebook = open_notebook(kernel=False)
    explorer = notebook.reopen(widget.model_id, notebook.saved(widget))
    page = notebook.page
    page.get_by_test_id("head-picker").click()
    page.get_by_test_id(f"{OTHER}-2").click()
    notice, figure = explorer.get_by_test_id("notice"), explorer.get_by_test_id("figure")
    expect(notice).to_contain_text("needs a running kernel")
    before = figure.bounding_box()
    page.set_viewport_size({"width": 390, "height": 900})  # what is there is drawn again
    while figure.bounding_box() == before:
        page.wait_for_timeout(20)
    expect_shown(explorer)
    expect(notice).to_contain_text("needs a running kernel")
    page.set_viewport_size({"width": 1000, "height": 900})
    page.get_by_test_id(f"{PLACE}-3").click()
    expect(explorer.get_by_test_id("readout")).to_contain_text("L1H3")
    expect_shown(explorer, head=3)


@pytest.mark.walk
def test_without_a_kernel_and_the_saved_explorer_the_cell_says_so_and_may_be_shown_again(
    open_notebook: Callable[..., Notebook], trace: Trace
) -> None:
    widget = show(trace, place=PLACE)
    notebook = open_notebook(kernel=False)
    page = notebook.page
    page.clock.install()
    page.evaluate("state => window.open_models(state)", notebook.saved(widget, has_library=False))
    page.evaluate(
        "id => { window.shown = window.show(id, document.querySelector('.cell')) }", widget.model_id
    )
    notebook.wait_until("() => window.told.length === 1")
    page.clock.fast_forward("01:01")
    expect(page.locator(".cell")).to_have_text(
        "No running kernel has sent the explorer. Run the cell again."
    )
    page.evaluate("window.shown")
    notebook.reopen(widget.model_id, notebook.saved(widget))


def test_two_views_of_one_widget_move_together_and_two_widgets_do_not(
    open_notebook: Callable[..., Notebook], trace: Trace
) -> None:
    notebook = open_notebook()
    widget, apart = show(trace, place=PLACE), show(trace, place=PLACE)
    first = notebook.show(widget)
    second = notebook.reopen(widget.model_id, {})
    other = notebook.show(apart)
    assert notebook.page.get_by_test_id("explorer").count() == 3
    second.get_by_test_id("stage-masked").click()
    first = notebook.page.get_by_test_id(f"cell-{widget.model_id}").first.get_by_test_id("explorer")
    expect_shown(first, stage="masked")
    expect_shown(other, stage="weights")
    assert (widget.stage, apart.stage) == ("masked", "weights")


@pytest.mark.walk
def test_a_comparison_shows_a_run_at_a_time_and_saves_both_and_their_difference_with_their_words(
    open_notebook: Callable[..., Notebook], trace: Trace
) -> None:
    changed = load_model("house-gpt").trace(TEXT, intervention=Intervention(scale=1.0))
    notebook = open_notebook()
    explorer = notebook.show(compare(trace, changed, place=PLACE, head=2))
    captions = ["baseline: unchanged run", "changed run", "changed − baseline"]
    weights = [one.find(PLACE).weights(2)[-1].max() for one in (trace, changed)]
    explorer.get_by_test_id("run-baseline").press("Enter")
    expect(explorer.get_by_test_id("top-key-0")).to_contain_text(f"{weights[0]:.4f}")
    explorer.get_by_test_id("run-baseline").press("Enter")
    expect(explorer.get_by_test_id("top-key-0")).to_contain_text(f"{weights[1]:.4f}")
    explorer.get_by_test_id("more").click()
    with notebook.page.expect_download() as saved:
        explorer.get_by_test_id("save-svg").click()
    root = ElementTree.parse(saved.value.path()).getroot()
    words = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {*captions, "·cat", "The"} <= {*words}
    assert any(str(text).startswith("Weights of L1H2") for text in words)


def test_it_follows_the_notebooks_theme(
    open_notebook: Callable[..., Notebook], trace: Trace
) -> None:
    notebook = open_notebook(colours=DARK)
    explorer = notebook.show(show(trace, place=PLACE))
    colour = "element => getComputedStyle(element).color"
    assert explorer.evaluate(colour) == "rgb(238, 238, 238)"
    notebook.page.evaluate(
        "() => Object.assign(document.body.style, { background: 'white', color: 'rgb(20, 20, 20)' })"
    )
    expect(explorer).to_have_css("color", "rgb(20, 20, 20)")


@pytest.mark.walk
def test_a_cell_that_is_attached_after_its_widget_was_made_shows_it_in_the_notebooks_colours(
    open_notebook: Callable[..., Notebook], trace: Trace
) -> None:
    notebook = open_notebook(colours=DARK)
    widget = show(trace, place=PLACE, head=3)
    notebook.show(widget)  # the library is in the page now
    cell = notebook.page.evaluate_handle(
        """async (id) => {
            const cell = document.createElement("div");
            await window.show(id, cell);
            return cell;
        }""",
        widget.model_id,
    )
    cell.evaluate("cell => document.querySelector('.cell').append(cell)")
    explorer = notebook.page.locator(".cell").get_by_test_id("explorer")
    expect_shown(explorer, head=3)
    expect(explorer).to_have_css("color", "rgb(238, 238, 238)")
    cell.evaluate("cell => cell.remove()")
    notebook.page.evaluate(
        "() => new Promise((then) => requestAnimationFrame(() => requestAnimationFrame(then)))"
    )
    widget.head = 6
    notebook.deliver(widget)
    cell.evaluate("cell => document.querySelector('.cell').append(cell)")
    expect_shown(explorer, head=6)


def test_formulas_are_set_in_their_own_fonts(
    open_notebook: Callable[..., Notebook], trace: Trace
) -> None:
    notebook = open_notebook()
    explorer = notebook.show(show(trace, place=PLACE))
    explorer.get_by_test_id("how").click()
    expect(explorer.get_by_test_id("formula").locator(".katex").first).to_be_visible()
    loaded = "() => document.fonts.ready.then((fonts) => fonts.check('16px KaTeX_Math'))"
    assert notebook.page.evaluate(loaded)


@pytest.mark.walk
def test_it_fits_a_phone(open_notebook: Callable[..., Notebook], trace: Trace) -> None:
    notebook = open_notebook(width=390)
    notebook.show(show(trace, place=PLACE))
    assert notebook.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_view_that_is_closed_leaves_nothing(
    open_notebook: Callable[..., Notebook], trace: Trace
) -> None:
    notebook = open_notebook()
    widget = show(trace, place=PLACE)
    notebook.show(widget)
    notebook.page.evaluate("window.end()")
    expect(notebook.page.get_by_test_id("explorer")).to_have_count(0)
    left = "id => [...window.models.get(id).listeners.values()].flat().length"
    assert notebook.page.evaluate(left, widget.model_id) == 0
