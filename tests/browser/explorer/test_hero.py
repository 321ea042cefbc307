"""The explorer as the screen of the main job: the card on a cell, the unchanged run, detail, what moves."""

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.explorer.stage import Stage, expected, middle
from tests.viz.explorer.records import record
from tests.viz.explorer.records_of_today import SINKS, later
from viz.explorer import Selection
from viz.explorer.message import Hero

FREE = record(6, kind="self")  # the same vectors without a mask
HEAD, LONGEST_SWITCH, STEP = 120, 700, 50  # milliseconds
# Frames come only when a test asks for one, at the moment that it says.
STUB = """() => {
    const waiting = new Map();
    let last = 0;
    window.requestAnimationFrame = (task) => (waiting.set((last += 1), task), last);
    window.cancelAnimationFrame = (name) => waiting.delete(name);
    window.frame = (now) => {
        const tasks = [...waiting.values()];
        waiting.clear();
        for (const task of tasks) task(now);
        return waiting.size;
    };
}"""


@pytest.fixture
def moving(stage: Stage) -> Iterator[Stage]:
    """A stage whose reader likes motion; the next test has it as it was."""
    stage.page.emulate_media(reduced_motion="no-preference")
    stage.page.evaluate(
        "window.frames_of_the_browser = [requestAnimationFrame, cancelAnimationFrame]"
    )
    yield stage
    stage.page.evaluate(
        "[window.requestAnimationFrame, window.cancelAnimationFrame] = window.frames_of_the_browser"
    )
    stage.page.emulate_media(reduced_motion=None)


def click_cell(stage: Stage, row: int, column: int, size: int = 6) -> None:
    place = stage.part("figure").bounding_box()
    assert place is not None
    at = middle(stage, row, column, size, size)
    stage.page.mouse.click(place["x"] + at["x"], place["y"] + at["y"])


def draw_box(stage: Stage, *cells: tuple[int, int]) -> None:
    place = stage.part("figure").bounding_box()
    assert place is not None
    (first, last) = (middle(stage, *cell, 6, 6) for cell in cells)
    stage.page.mouse.move(place["x"] + first["x"], place["y"] + first["y"])
    stage.page.mouse.down()
    stage.page.mouse.move(place["x"] + last["x"], place["y"] + last["y"], steps=4)
    stage.page.mouse.up()


def card(stage: Stage) -> list[float]:
    texts = stage.part("card").locator("dd").all_text_contents()
    return [float(text.replace("−", "-").replace("∞", "inf")) for text in texts]


def test_the_card_stands_beside_its_cell_with_the_runs_numbers(
    mounted: Callable[[Page], Stage], request: pytest.FixtureRequest, subtests: pytest.Subtests
) -> None:
    for place, cell in product(["wide", "narrow"], [(0, 0), (5, 0), (5, 5), (3, 2)]):
        with subtests.test(place=place, cell=cell):
            stage = mounted(request.getfixturevalue(place))
            attention = record(6)
            stage.send(attention, Selection(1, "weights", 3, 1))
            expect(stage.part("card")).to_be_hidden()
            click_cell(stage, *cell)
            steps = (attention.scores(1), attention.scaled(1), attention.weights(1))
            assert card(stage) == pytest.approx([float(step[cell]) for step in steps], abs=6e-5)
            box = stage.part("card").bounding_box()
            frame = stage.root.locator("[data-mark=cell]").bounding_box()
            window = stage.page.viewport_size
            assert box is not None
            assert frame is not None
            assert window is not None
            apart = (
                box["x"] >= frame["x"] + frame["width"]
                or box["x"] + box["width"] <= frame["x"]
                or box["y"] >= frame["y"] + frame["height"]
            )
            assert apart
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= window["width"]
            if place == "wide":
                assert box["y"] + box["height"] <= window["height"]


def test_the_keyboard_opens_the_card_stays_on_the_map_and_closes_it(stage: Stage) -> None:
    stage.send(record(6), Selection(0, "weights", 3, 1))
    figure = stage.part("figure")
    figure.press("Enter")
    expect(stage.part("card")).to_be_visible()
    expect(stage.part("card")).to_have_accessible_name("L2H0: ·the → ·cat")
    expect(figure).to_be_focused()
    figure.press("Escape")
    expect(stage.part("card")).to_be_hidden()
    figure.press("Enter")
    figure.press("ArrowLeft")
    stage.expect_cell(query=3, key=0)
    expect(stage.part("card")).to_be_hidden()
    figure.press("Enter")
    stage.part("card").get_by_role("link", name="why?").press("Escape")
    expect(figure).to_be_focused()
    expect(stage.part("card")).to_be_hidden()


def test_the_unchanged_run_is_shown_while_before_is_held(stage: Stage) -> None:
    stage.send(record(6))
    expect(stage.part("run-baseline")).to_be_hidden()
    stage.send(FREE, Selection(0, "weights", 3, 1), baseline=record(6), run="b")
    before, button = stage.part("figure").bounding_box(), stage.part("run-baseline")

    def expect_before() -> None:
        expect(button).to_have_attribute("aria-pressed", "true")
        expect(stage.part("headline")).to_contain_text("Before: ")
        np.testing.assert_allclose(stage.drawn(), expected(record(6), "weights", 0), atol=1e-6)
        row = int(stage.root.get_attribute("data-query") or 0)
        largest = record(6).weights(0)[row].max()
        expect(stage.part("top-key-0")).to_contain_text(f"{largest:.4f}")
        assert stage.part("figure").bounding_box() == before

    def expect_after() -> None:
        expect(button).to_have_attribute("aria-pressed", "false")
        expect(stage.part("headline")).to_contain_text("No mask")
        np.testing.assert_allclose(stage.drawn(), expected(FREE, "weights", 0), atol=1e-6)

    button.hover()
    stage.page.mouse.down()
    expect_before()
    stage.page.mouse.up()
    expect_after()
    for key in ("Enter", " "):
        button.press(key)
        expect_before()
        button.press(key)
        expect_after()
    tell = "on => document.dispatchEvent(new CustomEvent('explorer-before', { detail: on }))"
    stage.page.evaluate(tell, True)
    expect_before()
    stage.page.evaluate(tell, False)
    expect_after()


def fade(stage: Stage) -> Locator:
    return stage.root.locator(".figure > .fade")


def frames(stage: Stage, *moments: int) -> None:
    for now in moments:
        stage.page.evaluate("now => window.frame(now)", now)


def eased(share: float) -> float:
    return share * share * (3 - 2 * share)


def test_another_head_fades_in_and_no_step_is_longer_than_its_bound(moving: Stage) -> None:
    moving.send(record(6))
    moving.page.evaluate(STUB)
    moving.part("head-2").click()
    moving.expect_cell(head=2)
    frames(moving, 0)
    expect(fade(moving)).to_have_css("opacity", "1")
    for now, passed in ((16, 16), (9_000, 16 + STEP)):
        frames(moving, now)
        shown = float(fade(moving).evaluate("one => one.style.opacity"))
        assert shown == pytest.approx(1 - eased(passed / HEAD))
    frames(moving, 18_000, 27_000)
    expect(fade(moving)).to_be_hidden()
    assert moving.page.evaluate("window.frame(36000)") == 0  # nothing goes on


def edge(stage: Stage) -> list[float]:
    """Where the older picture begins in each row, from its left, in pixels of the figure."""
    path = fade(stage).evaluate("one => one.style.clipPath")
    points = [float(point.split()[0].removesuffix("px")) for point in path[8:-1].split(",")]
    return points[1:-1:2]


@pytest.mark.parametrize("lifts", [True, False])
def test_the_hatch_rolls_along_the_diagonal_and_the_title_comes_last(
    moving: Stage, lifts: bool
) -> None:
    before, after = (record(6), FREE) if lifts else (FREE, record(6))
    moving.send(before, run="before")
    title = moving.part("headline").text_content()
    moving.page.evaluate(STUB)
    moving.post(after, baseline=before, run="switched")
    frames(moving, 0)
    places = []
    for n in range(1, 4):
        frames(moving, n * 1_000)  # however late a frame comes, it counts as one step
        places.append(edge(moving))
        assert sorted(places[-1], reverse=True) == places[-1]  # along the diagonal
        expect(moving.part("headline")).to_have_text(str(title))
    gone = np.diff(places, axis=0)
    assert ((gone >= 0) if lifts else (gone <= 0)).all()
    assert gone.any()
    frames(moving, *(n * 1_000 for n in range(4, LONGEST_SWITCH // STEP + 1)))
    expect(fade(moving)).to_be_hidden()
    expect(moving.part("headline")).to_contain_text("No mask")
    assert moving.page.evaluate("window.frame(1e6)") == 0  # nothing goes on


def test_nothing_moves_for_a_reader_who_wants_that(moving: Stage) -> None:
    moving.page.emulate_media(reduced_motion="reduce")
    moving.send(record(6))
    moving.page.evaluate(STUB)
    moving.part("head-2").click()
    moving.expect_cell(head=2)
    expect(fade(moving)).to_be_hidden()


def test_the_sink_has_its_name_above_its_column(stage: Stage) -> None:
    stage.send(later(sinks=SINKS))
    name = stage.root.locator(".header .sinkname")
    expect(name).to_have_text("sink")
    above, column = name.bounding_box(), stage.root.locator("[data-mark=sink]").bounding_box()
    assert above is not None
    assert column is not None
    assert above["x"] == pytest.approx(column["x"], abs=2)
    assert above["width"] == pytest.approx(column["width"], abs=3)


def test_of_a_long_text_the_words_and_the_chosen_cell_are_labelled(stage: Stage) -> None:
    tokens = [f" w{n // 3}" if n % 3 == 0 else "on" for n in range(54)]
    stage.send(record(54), Selection(0, "weights", 50, 22), queries=tokens, keys=tokens)
    shown = stage.root.locator(".column:not(.left-out) .face").all_text_contents()
    assert shown.count("on") == 2  # of the chosen query and key
    assert len(shown) > 8
    rows = stage.root.locator(".figure > .plotly .ytick text").all_text_contents()
    assert "on" not in rows
    assert len(rows) > 8
    expect(stage.root.locator(".marks text")).to_have_text("on")


def test_simple_detail_has_a_closed_formula(stage: Stage) -> None:
    stage.send(record(6), hero=Hero(""))
    expect(stage.part("check")).to_be_hidden()
    expect(stage.part("formula")).to_be_hidden()
    stage.part("how").click()
    expect(stage.part("formula")).to_be_visible()


def test_full_detail_is_kept_by_the_browser_and_told_to_python(stage: Stage) -> None:
    stage.send(record(6), hero=Hero(""))
    stage.part("detail-full").click()
    assert stage.asked() == ["full"]
    assert "attention-detail=full" in stage.page.evaluate("document.cookie")
    stage.page.evaluate("document.cookie = 'attention-detail=; max-age=0'")
    stage.send(record(6))
    expect(stage.part("stages").get_by_role("radio")).to_have_count(8)


def test_the_check_the_files_the_table_and_the_code_stand_behind_one_button(stage: Stage) -> None:
    stage.send(record(6))
    for part in ("check", "save-png", "table", "code"):
        expect(stage.part(part)).to_be_hidden()
    stage.part("more").click()
    for part in ("check", "save-png"):
        expect(stage.part(part)).to_be_visible()
    for part in ("table", "code"):
        stage.part(f"open-{part}").click()
        expect(stage.part(part)).to_be_visible()
    stage.part("more").press("Escape")
    expect(stage.part("check")).to_be_hidden()
    stage.part("more").click()
    stage.part("open-code").click()  # this browser keeps what was chosen
    expect(stage.part("code")).to_be_hidden()


def test_the_large_number_is_the_cells_and_says_what_it_was(stage: Stage) -> None:
    stage.send(record(6))
    stage.send(FREE, baseline=record(6), run="switched")
    query, key = (int(stage.root.get_attribute(f"data-{name}") or 0) for name in ("query", "key"))
    assert key > query  # among those that were hidden
    gain = np.triu(FREE.weights(0), 1)
    assert (query, key) == np.unravel_index(int(gain.argmax()), gain.shape)
    expect(stage.part("now-number")).to_have_text(f"{gain.max():.4f}")
    expect(stage.part("now")).to_contain_text("hidden before")
    stage.send(record(6), run="back")
    stage.expect_cell(query=3, key=1)  # where it was before the switch


def test_a_row_that_the_reader_chose_stays_after_a_switch(stage: Stage) -> None:
    stage.send(record(6))
    stage.part("column-2").click()
    stage.send(FREE, baseline=record(6), run="switched")
    stage.expect_cell(query=2, key=3 + int(FREE.weights(0)[2, 3:].argmax()))


def test_a_box_drawn_over_the_map_shows_its_cells_larger_until_escape(stage: Stage) -> None:
    stage.send(record(6))
    draw_box(stage, (4, 3), (2, 1))
    words = stage.part("window")
    expect(words).to_contain_text("Rows 2–4, columns 1–3, every cell.")
    click_cell(stage, 1, 0, 3)
    stage.expect_cell(query=3, key=1)
    figure = stage.part("figure")
    figure.press("Escape")  # of the card
    figure.press("Escape")
    expect(words).to_be_hidden()
    click_cell(stage, 5, 0)
    stage.expect_cell(query=5, key=0)
