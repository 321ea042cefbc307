"""Picture and traits stay together where layers differ in heads or tokens."""

from collections.abc import Callable

from playwright.sync_api import Locator, expect

from model import load_model
from tests.browser.notebook.notebook import Notebook
from tests.browser.notebook.test_widget import expect_told
from tests.viz.notebook.test_another_layer import layers_of_four_and_eight_heads
from viz.notebook import AttentionExplorer, show


def expect_as_told(notebook: Notebook, widget: AttentionExplorer, explorer: Locator) -> None:
    """Waits until picture, model of the page and Python have the same choice."""
    names = ["head", "stage", "query", "key"]
    notebook.wait_until(
        """([id, place, choice]) => {
            const shown = document.querySelector("[data-testid=cell-" + id + "] > div")
                .lastChild.shadowRoot.querySelector("[data-testid=explorer]").dataset;
            const model = window.models.get(id);
            return shown.ready === "true" && model.get("place") === place && Object.entries(choice)
                .every(([name, value]) => shown[name] === String(value) && model.get(name) === value);
        }""",
        arg=[widget.model_id, widget.place, {name: getattr(widget, name) for name in names}],
    )


def test_a_head_that_only_the_opened_layer_has_is_chosen_in_python_too(
    open_notebook: Callable[..., Notebook],
) -> None:
    trace = layers_of_four_and_eight_heads()
    few, many = (one.name for one in trace.attention)
    notebook = open_notebook()
    widget = show(trace, place=few, head=1)
    explorer = notebook.show(widget)
    notebook.page.get_by_test_id("head-picker").click()
    notebook.page.get_by_test_id(f"{many}-7").click()
    expect_told(notebook, widget, place=many, head=7)
    expect_as_told(notebook, widget, explorer)
    expect(explorer.get_by_test_id("readout")).to_contain_text("1.self_attn H7")
    expect(notebook.page.get_by_test_id("head-picker")).to_contain_text("1.self_attn H7")
    notebook.page.get_by_test_id(f"{few}-2").click()
    expect_told(notebook, widget, place=few, head=2)
    expect_as_told(notebook, widget, explorer)


def test_a_late_token_that_the_opened_layer_lacks_is_its_last_in_python_too(
    open_notebook: Callable[..., Notebook],
) -> None:
    french = load_model("translate-en-fr").trace("the black cat sleeps")
    source, target = len(french.tokens), len(french.target_tokens)
    assert source < target
    notebook = open_notebook()
    widget = show(french, place="decoder.0.self", query=0, key=0)
    explorer = notebook.show(widget)
    notebook.page.get_by_test_id("head-picker").click()
    other = notebook.page.get_by_test_id("encoder.0.self-1")
    expect(other).to_be_visible()
    late = "(figure, key) => figure.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))"
    for _ in range(target - 1):
        explorer.get_by_test_id("figure").evaluate(late, "ArrowDown")
    other.evaluate("button => button.click()")
    expect_told(notebook, widget, place="encoder.0.self", head=1)
    expect_as_told(notebook, widget, explorer)
    assert widget.query == source - 1
