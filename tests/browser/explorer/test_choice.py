"""What is chosen in the explorer, by clicks and by keys: what it shows then, and what it reports."""

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.explorer.stage import Stage, expected, middle
from tests.viz.explorer.records import record
from viz.explorer import Selection


def test_a_head_is_switched_in_the_browser_and_reported_once(stage: Stage) -> None:
    attention = record(6)
    stage.send(attention)
    stage.click_at_once("head-1", "head-2")
    stage.expect_cell(head=2)
    np.testing.assert_allclose(stage.drawn(), expected(attention, "weights", 2), atol=1e-6)
    expect(stage.part("title")).to_contain_text("L2H2")
    assert stage.reports() == [{"head": 2, "stage": "weights", "query": 3, "key": 1, "revision": 0}]


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
    last = stage.reports()[-1]  # the only one, where the keys come quickly
    assert (last["query"], last["key"]) == (1, 0)


def test_stages_are_reached_by_keys_alone(stage: Stage) -> None:
    stage.send(record(6))
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


def test_a_head_that_was_not_sent_is_asked_for_at_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    attention = record(6, heads=4)
    monkeypatch.setattr("viz.explorer.message.BUDGET", 2 * 4 * attention.query[0].nbytes)
    stage.send(attention, Selection(0, "weights", 3, 1))
    stage.expect_report_at_once("head-3")
    expect(stage.part("notice")).to_have_text("Fetching head 3 …")
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
    stage.expect_report_at_once("stage-output")
    expect(stage.part("notice")).to_have_text("Fetching the values of head 0 …")
    stage.post(attention, asked=Selection(0, "output", 3, 1))
    stage.expect_cell(stage="output")
    np.testing.assert_allclose(stage.drawn(), attention.output[0], atol=1e-6)
    expect(stage.part("check")).not_to_contain_text("summed")
    stage.post(attention)  # the answer to an older report, without values: they stay
    stage.part("head-1").click()
    stage.ready()
    np.testing.assert_allclose(stage.drawn(), attention.output[1], atol=1e-6)


@pytest.mark.parametrize("compared", [False, True])
def test_without_the_values_of_a_large_layer_every_other_stage_is_whole(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, compared: bool
) -> None:
    attention, baseline = record(6, heads=2), record(6, heads=2, seed=3) if compared else None
    monkeypatch.setattr("viz.explorer.message.LIGHT", 0)
    stage.send(attention, baseline=baseline)
    for name in ("query", "key", "scores", "scaled", "masked", "weights"):
        stage.part(f"stage-{name}").click()
        stage.expect_cell(stage=name)
        np.testing.assert_allclose(
            stage.drawn(int(compared)), expected(attention, name, 0), atol=1e-5
        )
        expect(stage.part("numbers-formula").locator("math").first).to_be_attached()


def test_a_mount_that_ends_after_the_next_one_takes_nothing_from_it(stage: Stage) -> None:
    stage.send(record(6))
    stage.page.evaluate("""() => {
        const { send, unmount } = window;
        window.send = (block) => { send(block); unmount(); };
    }""")
    second = record(6, seed=1)
    stage.send(second)
    np.testing.assert_allclose(stage.drawn(), expected(second, "weights", 0), atol=1e-6)
    stage.part("head-1").click()
    np.testing.assert_allclose(stage.drawn(), expected(second, "weights", 1), atol=1e-6)


def test_the_same_message_again_draws_nothing_anew(stage: Stage) -> None:
    stage.send(record(6))
    stage.root.evaluate("root => root.querySelector('.title').textContent = 'untouched'")
    stage.send(record(6))
    expect(stage.part("title")).to_have_text("untouched")


def test_a_place_that_closes_leaves_nothing_running(stage: Stage) -> None:
    stage.send(record(6))
    stage.click_at_once("head-1", then="window.unmount()")
    assert stage.reports() == []


def test_a_choice_not_yet_reported_is_kept_when_the_place_is_mounted_anew(stage: Stage) -> None:
    attention = record(6)
    stage.send(attention)
    stage.click_at_once("head-2", then="window.unmount()")
    stage.send(attention)
    stage.expect_cell(head=2)
    assert [report["head"] for report in stage.reports()] == [2]


def test_a_choice_that_python_has_not_answered_is_told_again_by_a_new_mount(stage: Stage) -> None:
    """Whether the first report arrived cannot be known there, and the same report twice does no harm."""
    attention = record(6)
    stage.send(attention)
    stage.part("head-2").click()
    assert [report["head"] for report in stage.reports()] == [2]
    stage.page.evaluate("window.unmount()")
    stage.send(attention)
    stage.expect_cell(head=2)
    assert [report["head"] for report in stage.reports()] == [2, 2]
    stage.send(attention, Selection(2, "weights", 3, 1))  # Python's answer
    assert len(stage.reports()) == 2
