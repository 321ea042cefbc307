"""What the explorer draws: the model's numbers, in every theme, width and length of text."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from model.analysis.stream.around_heads import AroundHeads
from tests.browser.explorer.stage import DARK, STAGES, Stage, expected, middle
from tests.model import tiny
from tests.viz.explorer.records import record
from viz.explorer import Selection

TWO_FRAMES_LATER = """() => new Promise((tell) => {
    const next = () => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(tell)));
    setTimeout(next);
})"""


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


def test_the_numbers_are_those_of_head_and_layer_whatever_was_drawn_before(stage: Stage) -> None:
    stage.send(record(6))
    other = record(7, layer=5, seed=9)
    stage.send(other, revision=0)
    expect(stage.part("title")).to_contain_text("L5H0")
    np.testing.assert_allclose(stage.drawn(), expected(other, "weights", 0), atol=1e-6)


def test_a_masked_cell_is_called_so_everywhere_and_never_zero(stage: Stage) -> None:
    stage.send(record(6), Selection(0, "weights", 1, 4))
    assert np.isnan(stage.drawn()[1, 4])
    stage.part("figure").hover(position=middle(stage, 1, 4, 6, 6))
    expect(stage.part("tooltip")).to_contain_text("masked")
    expect(stage.part("legend")).to_contain_text("masked")
    expect(stage.part("chip-query-4")).to_have_attribute("title", "query 4 “·cat”: masked")
    stage.part("table").locator("summary").click()
    expect(stage.part("table").locator("tbody tr").nth(1).locator("td").nth(4)).to_have_text(
        "masked"
    )
    stage.part("stage-masked").click()
    expect(stage.part("details")).to_contain_text("comes later than")


def test_scores_before_the_mask_show_the_future_too(stage: Stage) -> None:
    stage.send(record(6), Selection(0, "scores", 1, 4))
    assert np.isfinite(stage.drawn()).all()
    expect(stage.part("legend")).not_to_contain_text("masked")


def test_a_masked_key_that_still_gets_weight_shows_it(stage: Stage) -> None:
    attention = record(6, mask_value=-1.0)
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
    expect(stage.part("top-keys")).to_contain_text("Every key of this query is masked")
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
    stage.post(record(6), Selection())
    assert stage.reports() == []  # by then, what could be drawn would be
    expect(stage.root).to_have_attribute("data-ready", "false")
    stage.page.evaluate("document.querySelector('#place').style.display = 'block'")
    assert stage.drawn().shape == (6, 6)


def test_without_plotly_the_picture_is_drawn_all_the_same(
    mounted: Callable[[Page], Stage], page_without: Callable[[str], Page]
) -> None:
    stage = mounted(page_without("plotly.min.js"))
    stage.send(record(6))
    stage.expect_cell(renderer="canvas")
    expect(stage.part("notice")).to_contain_text("Plotly could not be loaded")
    stage.part("figure").click(position=middle(stage, 5, 2, 6, 6))
    stage.expect_cell(query=5, key=2)


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


def test_what_is_left_without_room_draws_nothing(stage: Stage) -> None:
    """A page that is left, or a tab that is closed, between the picture and what is drawn after it."""
    complaints: list[str] = []
    stage.page.on("console", lambda message: complaints.append(message.text))
    stage.send(record(6))
    # The browser tells of the new size after this frame's tasks, and so after the picture is drawn.
    stage.part("stage-scores").evaluate(
        """(part) => {
            document.querySelector("#place").style.display = "none";
            requestAnimationFrame(() => part.click());
        }"""
    )
    stage.page.evaluate(TWO_FRAMES_LATER)
    assert complaints == []


def test_where_a_few_columns_are_huge_the_colours_end_early_and_it_says_so(stage: Stage) -> None:
    """Streams of large models have such columns: all others would be white."""
    model = tiny.loaded("gpt")
    trace = model.trace("the cat saw the dog")
    norm = next(norm for norm in trace.norms if norm.name == "decoder.1.self.norm")
    numbers = norm.input.copy()
    numbers[0, 3] = 1000
    huge = replace(norm, input=numbers)

    class Around(AroundHeads):
        norm = property(lambda self: huge)  # type: ignore[assignment]

    attention, tokens = trace.attention[1], [token.text for token in trace.tokens]
    around = [Around(model, trace, attention)]
    stage.send(attention, Selection(0, "norm", 1, 0), queries=tokens, keys=tokens, around=around)
    plot = stage.root.locator(".figure > .plotly")
    end = plot.evaluate("plot => plot.data[0].zmax")
    sizes = np.abs(numbers)
    usual = np.percentile(sizes, 98, method="inverted_cdf")
    assert usual <= end <= 1.01 * usual
    said = f"{(sizes > end).sum():,} of {sizes.size:,} numbers lie beyond"
    expect(stage.part("legend")).to_contain_text(said)
    stage.part("stage-weights").click()
    expect(stage.part("legend")).not_to_contain_text("beyond")
