"""What is chosen in the explorer by keys: where the focus is then."""

import pytest
from playwright.sync_api import expect

from tests.browser.explorer.stage import Stage
from tests.viz.explorer.records import record
from viz.explorer import Selection


def test_stages_are_reached_by_keys_alone(stage: Stage) -> None:
    stage.send(record(6))
    for _ in range(2):  # past Play
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
        ("column-3", "ArrowRight", "column-4"),
        ("top-key-2", "Enter", "top-key-2"),
        ("stage-scores", "ArrowLeft", "stage-value"),
    ],
)
def test_a_control_used_by_keys_keeps_the_focus(
    stage: Stage, control: str, key: str, focused: str
) -> None:
    stage.send(record(6), Selection(0, "scores", 3, 1))
    stage.part("how").click()
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
    stage.part("how").click()
    stage.part("more").click()
    stage.part("open-table").click()
    for role in ("button", "radio", "radiogroup", "application", "table"):
        for control in stage.root.get_by_role(role).all():  # type: ignore[arg-type]
            expect(control).not_to_have_accessible_name("")
