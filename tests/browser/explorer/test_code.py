"""The code beside the formula, and the keyboard."""

from playwright.sync_api import expect

from tests.browser.explorer.stage import Stage
from tests.viz.explorer.records import record


def test_the_choices_of_the_code_keep_the_keyboard_when_they_draw_it_anew(stage: Stage) -> None:
    stage.send(record(6))
    stage.part("how").click()
    expect(stage.part("formula")).to_be_visible()
    stage.part("reading-code").click()
    expect(stage.part("formula")).to_be_hidden()
    stage.part("style-torch").click()
    stage.part("copy-script").click()  # no clipboard here: the script is shown, and selected
    expect(stage.part("script")).to_be_visible()
    stage.part("style-torch").press("ArrowLeft")
    expect(stage.part("style-loops")).to_be_focused()
    stage.part("reading-code").press("ArrowLeft")
    expect(stage.part("reading-formula")).to_be_focused()
    expect(stage.part("formula")).to_be_visible()
