"""More changes on Explore in a real browser: change, undo, click an edge, and open what was saved."""

import codecs
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, WebSocketRoute, expect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from model import Intervention, load_model
from model.trace.trace_file import read_trace
from tests.browser import conftest
from tests.browser.controls import MARKS, click_mark, download
from tests.csv_reading import read_matrix_csv

TEXT = "Tom Hill saw a red ball"
HOSTILE = "</script><script>window.acted=1</script> =1+1"
ONE_LINE = 30  # pixels: two would be higher
CHANGES = {"text": TEXT, "place": "decoder.0.self", "show": "More changes"}


def edit(page: Page, kind: str) -> Locator:
    """Opens a group of the drawer's controls."""
    drawer = page.locator(".st-key-drawer")
    drawer.get_by_role("radio", name=kind, exact=True).click()
    return drawer


def test_an_intervention_is_listed_undone_and_linked(open_page: Callable[..., Page]) -> None:
    page = open_page("/", **CHANGES)
    expect(page.get_by_text("Nothing is changed.")).to_be_visible()
    readout = page.get_by_test_id("readout")
    own = readout.text_content() or ""
    edit(page, "Heads").get_by_role("button", name="L0H1", exact=True).click()
    expect(page.get_by_role("button", name="L0H1 off ✕")).to_be_visible()
    edit(page, "Scores").get_by_text("Positions", exact=True).click()
    expect(page.get_by_role("button", name="positions off ✕")).to_be_visible()
    expect(readout).not_to_have_text(own)
    expect(page).to_have_url(re.compile(r"(?=.*ablated=decoder\.0\.self)(?=.*positions=0)"))
    page.get_by_role("button", name="L0H1 off ✕").click()
    expect(page.get_by_role("button", name="L0H1 off ✕")).to_have_count(0)
    page.locator(".st-key-drawer").get_by_role("button", name="Undo", exact=True).click()
    expect(page.get_by_role("button", name="L0H1 off ✕")).to_be_visible()
    page.reload()
    expect(page.get_by_role("button", name="positions off ✕")).to_be_visible()
    page.get_by_role("button", name="Reset", exact=True).click()
    expect(page.get_by_text("Nothing is changed.")).to_be_visible()
    expect(page).not_to_have_url(re.compile("ablated|positions=0"))


@pytest.mark.walk
def test_the_editor_stays_open_while_cells_are_clicked_and_a_masked_cell_is_not_cut(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/", **CHANGES)
    editor = edit(page, "Edges")
    expect(editor.get_by_role("button", name="Cut the whole row")).to_be_visible()
    click_cell(page, 1, 3)
    click_cell(page, 3, 1)
    expect(page.get_by_role("button", name="3 cannot see 1 ✕")).to_be_visible()
    expect(page.get_by_role("button", name="1 cannot see 3 ✕")).to_have_count(0)


@pytest.mark.walk
def test_a_request_that_left_before_the_cut_was_heard_does_not_mend_it_again(
    open_page: Callable[..., Page], fresh_page: Callable[..., Page]
) -> None:
    """The browser hears nothing from the click on the cell until the next click is on its way."""
    page = fresh_page()
    held: list[tuple[WebSocketRoute, str | bytes]] = []
    holds = False

    def connect(socket: WebSocketRoute) -> None:
        def hear(message: str | bytes) -> None:
            if holds:
                held.append((socket, message))
            else:
                socket.send(message)

        socket.connect_to_server().on_message(hear)

    def runs() -> int:
        """Runs of the page that ended meanwhile."""
        kinds = [ForwardMsg.FromString(message).WhichOneof("type") for _, message in held]
        return kinds.count("script_finished")

    def wait(count: int) -> None:
        while runs() < count:
            page.wait_for_timeout(50)

    page.route_web_socket("**/_stcore/stream", connect)
    open_page("/", on=page, **CHANGES)
    edit(page, "Edges")
    cell_of(page, 3, 1).scroll_into_view_if_needed()
    expect(page.locator(conftest.QUIET_APP)).to_be_attached()
    holds = True
    click_cell(page, 3, 1)
    wait(1)
    edit(page, "Mask")
    wait(2)
    holds = False
    for socket, message in held:
        socket.send(message)
    expect(page).to_have_url(re.compile("blocked="))
    expect(page.get_by_role("button", name="3 cannot see 1 ✕")).to_be_visible()


@pytest.mark.walk
def test_the_largest_number_of_the_stream_is_set_to_nought_and_given_back(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/", **CHANGES)
    chip = page.get_by_role("button", name=re.compile(r"^stream before L\d: .*= 0 ✕"))
    table = edit(page, "Stream").get_by_test_id("stDataFrame")
    for count in (1, 0):
        expect(table.locator("canvas").first).to_be_visible()
        conftest.wait_until_settled(page)
        place = table.bounding_box()
        page.mouse.click(place["x"] + 15, place["y"] + 50)  # the box of the first row
        expect(chip).to_have_count(count)
    expect(page.get_by_text("Nothing is changed.")).to_be_visible()


@pytest.mark.walk
def test_each_stage_of_today_is_switched_and_off_and_on_again_is_the_models_own(
    open_page: Callable[..., Page],
) -> None:
    """Cap, bias, learned sinks and window of the model that has them all."""
    page = open_page("/", model="all-stages", query=5, **CHANGES)
    switches = edit(page, "Scores")
    readout = page.get_by_test_id("readout")
    expect(readout).to_contain_text(", weight ")
    own = readout.text_content()
    for words, chip in (
        ("Soft cap of the scores", "no cap ✕"),
        ("Bias, added to the scores", "no bias ✕"),
        ("Learned sinks in the softmax", "no sinks ✕"),
    ):
        switches.get_by_text(re.compile(f"^{words}")).click()
        expect(page.get_by_role("button", name=chip)).to_be_visible()
        expect(readout).not_to_have_text(own)
        page.get_by_role("button", name=chip).click()
        expect(page.get_by_text("Nothing is changed.")).to_be_visible()
        expect(readout).to_have_text(own)
    edit(page, "Mask")
    field = page.get_by_role("spinbutton", name="Window: keys that a query reads")
    field.fill("2")
    field.press("Enter")
    expect(page.get_by_role("button", name="window of 2 keys ✕")).to_be_visible()
    expect(readout).not_to_have_text(own)


@pytest.mark.walk
def test_weights_that_dropout_acts_on_are_said_to_be_those_before_it(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/", **CHANGES, dropout=0.5)
    legend = page.get_by_test_id("legend")
    page.get_by_test_id("run-difference").click()
    expect(legend).to_contain_text("no difference before dropout")
    expect(legend).not_to_contain_text("equal")
    page.get_by_test_id("stage-scores").click()
    expect(legend).to_contain_text("no difference: both runs are equal here")


def click_cell(page: Page, query: int, key: int) -> None:
    click_mark(cell_of(page, query, key), re.compile(rf"query {query}\b.*, key {key}\b"))


def cell_of(page: Page, query: int, key: int) -> Locator:
    """A cell of the grid of edges, whose marks stand row by row."""
    editor = page.locator(".st-key-drawer")
    return editor.locator(MARKS).nth(query * len(TEXT.split()) + key)


def saved(page: Page, name: str, folder: Path) -> Path:
    """Presses one button of the box “Save” and keeps the file."""
    found = download(page, page.get_by_role("button", name=name, exact=True))
    file = folder / found.suggested_filename
    found.save_as(file)
    return file


def test_what_is_saved_opens_without_a_network_and_holds_the_same_numbers(
    open_page: Callable[..., Page],
    fresh_page: Callable[..., Page],
    troubles: list[str],
    tmp_path: Path,
) -> None:
    page = open_page(
        "/", model="stories", text=HOSTILE, place="decoder.1.self", head=2, mask="none"
    )
    page.get_by_test_id("stPopoverButton").filter(has_text="Save").click()
    picture = saved(page, "Picture as a page (HTML)", tmp_path)
    written = saved(page, "Its numbers (CSV)", tmp_path).read_bytes()
    assert written.startswith(
        codecs.BOM_UTF8
    )  # else spreadsheets read its letters in another encoding
    report = saved(page, "Report (HTML)", tmp_path)
    trace = read_trace(saved(page, "The whole trace (safetensors)", tmp_path).read_bytes())

    model, intervention = load_model("stories"), Intervention(mask="none")
    expected = model.trace(HOSTILE, intervention=intervention).find("decoder.1.self").weights(2)
    np.testing.assert_array_equal(
        read_matrix_csv(written.decode("utf-8-sig"))["changed"].values, expected
    )
    np.testing.assert_array_equal(trace.find("decoder.1.self").weights(2), expected)
    for file in (picture, report):
        offline = fresh_page(offline=True)
        asked: list[str] = []
        offline.on("request", lambda request, asked=asked: asked.append(request.url))
        offline.goto(file.as_uri())
        expect(offline.locator(".js-plotly-plot .heatmaplayer image")).to_have_count(4)
        shown = offline.evaluate(
            "Array.from(document.querySelectorAll('.picture')[1]._fullData.at(-1).z, r => [...r])"
        )
        np.testing.assert_array_equal(np.array(shown, np.float32), expected)
        assert offline.evaluate("window.acted") is None
        assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
        assert offline.locator("img, iframe").count() == 0
    expect(offline.locator(".formula math")).to_be_visible()
    expect(offline.get_by_text(HOSTILE)).to_be_visible()
    with offline.expect_download() as download:
        offline.get_by_role("button", name="SVG").nth(1).click()
    assert "<svg" in Path(download.value.path()).read_text("utf-8")
    opened = {f"request beyond our server: {file.as_uri()}" for file in (picture, report)}
    troubles[:] = [line for line in troubles if line not in opened]
