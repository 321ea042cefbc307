"""The picture in a chat, in a frame that may do nothing by itself: what the reader chooses is read by the
assistant, with the numbers of the run, and no request leaves the page."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from model import Trace, load_model
from tests.browser.chat.chat import Chat
from viz.chat.answers import rounded

TEXT = "Tom Hill saw a red ball. Anna gave the ball to Tom"
PLACE, OTHER = "decoder.1.self", "decoder.3.self"


@pytest.fixture(scope="module")
def trace() -> Trace:
    return load_model("house-gpt").trace(TEXT)


def test_what_the_reader_chooses_is_read_by_the_assistant(
    open_chat: Callable[..., Chat], trace: Trace
) -> None:
    chat = open_chat()
    frame, state_id = chat.show(text=TEXT, layer=PLACE, head=7)
    explorer = frame.get_by_test_id("explorer")
    expect(explorer).to_have_attribute("data-ready", "true")
    expect(frame.get_by_test_id("readout")).to_contain_text("L1H7")
    expect(explorer.locator(".readout")).to_contain_text("0.8861")
    frame.get_by_test_id("head-picker").click()
    frame.get_by_test_id(f"{OTHER}-2").click()
    expect(frame.get_by_test_id("readout")).to_contain_text("L3H2")
    frame.get_by_test_id("head-picker").press("Escape")
    frame.get_by_test_id("stage-scores").click()
    frame.get_by_test_id("figure").press("ArrowUp")
    told = chat.wait_for_state(layer=OTHER, head=2, stage="scores", query={"position": 11})
    attention = trace.find(OTHER)
    key = told["key"]["position"]
    assert told["query"]["token"] == trace.tokens[11].text
    assert told["weight"] == rounded(float(attention.weights(2)[11, key]))
    assert told["score"] == rounded(float(attention.scores(2)[11, key]))
    assert told["check"] == rounded(trace.check())
    assert chat.state(state_id) == told


@pytest.mark.walk
def test_the_formulas_have_their_letters(open_chat: Callable[..., Chat]) -> None:
    """A frame may load no font but those that the app carries and asks for."""
    chat = open_chat()
    frame, _ = chat.show(text=TEXT)
    frame.get_by_test_id("how").click()
    expect(frame.locator(".katex").first).to_be_visible()
    loaded = """() => document.fonts.ready.then(
        (fonts) => [...fonts].filter(({ status }) => status === "loaded").length)"""
    assert frame.locator("body").evaluate(loaded) > 0
