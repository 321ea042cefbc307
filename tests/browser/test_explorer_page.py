"""The explorer inside the app: its files are served, its choice travels, hovering does not."""

import re
import struct
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.controls import BARS, click_mark, download, more, pick_head, show
from tests.browser.explorer.stage import AFTER_THE_DELAY
from viz.saving.certificate import certificate_in, check
from viz.saving.save import code_to_scan


@pytest.fixture
def explorer(open_page: Callable[..., Page]) -> Locator:
    """The explorer on a page opened by its own address, once it is drawn."""
    page = open_page("/", text="The cat saw the dog and the cat ran")
    found = page.get_by_test_id("explorer")
    expect(found).to_have_attribute("data-ready", "true")
    return found


def test_plotly_and_katex_come_from_our_own_server(explorer: Locator) -> None:
    expect(explorer).to_have_attribute("data-renderer", "plotly")
    expect(explorer.locator(".figure > .plotly .heatmaplayer image")).to_have_count(1)
    explorer.get_by_test_id("how").click()
    expect(explorer.get_by_test_id("formula").locator(".katex-html")).to_be_visible()
    script = explorer.page.request.get("/app/static/plotly.min.js")
    assert "javascript" in script.headers["content-type"]


def test_the_last_of_many_quick_choices_is_the_one_in_the_link(
    explorer: Locator, settle: Callable[..., Page]
) -> None:
    page = explorer.page
    for head in (1, 2, 3, 0, 3, 2):
        pick_head(page, head)
    page.get_by_test_id("stage-scaled").click()
    page.wait_for_url(lambda url: parse_qs(urlsplit(url).query).get("stage") == ["scaled"])
    settle()  # whatever the server still answers must not turn it back
    expect(explorer).to_have_attribute("data-head", "2")
    expect(explorer).to_have_attribute("data-stage", "scaled")
    assert parse_qs(urlsplit(page.url).query)["head"] == ["2"]


def test_hovering_never_travels(
    open_page: Callable[..., Page], fresh_page: Callable[..., Page], settle: Callable[..., Page]
) -> None:
    sent: list[bytes | str] = []
    page = fresh_page()
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(frame)))
    open_page("/", on=page, text="The cat saw the dog and the cat ran")
    expect(page.get_by_test_id("explorer")).to_have_attribute("data-ready", "true")
    page.evaluate(AFTER_THE_DELAY, "unanswered")  # what is to be reported of the first view is
    settle(page)
    before = len(sent)
    figure = page.get_by_test_id("figure")
    for step in range(12):
        figure.hover(position={"x": 150 + 15 * step, "y": 120 + 15 * step})
    expect(page.get_by_test_id("tooltip")).to_be_visible()
    page.evaluate(AFTER_THE_DELAY, "unanswered")
    settle(page)
    assert len(sent) == before


def test_a_dark_page_has_a_dark_picture(page: Page, open_page: Callable[..., Page]) -> None:
    page.emulate_media(color_scheme="dark")
    open_page("/")
    found = page.get_by_test_id("explorer")
    expect(found).to_have_attribute("data-ready", "true")
    ground = found.locator(".figure > .plotly").evaluate("plot => plot.data[0].colorscale[0][1]")
    page_ground = page.get_by_test_id("stApp").evaluate(
        "app => getComputedStyle(app).backgroundColor"
    )
    assert ground.replace(" ", "") == page_ground.replace(" ", "")
    assert max(int(channel) for channel in re.findall(r"\d+", ground)) < 64


def test_the_check_line_says_that_the_models_output_is_reproduced(explorer: Locator) -> None:
    expect(explorer.get_by_test_id("check")).to_contain_text("✓")
    expect(explorer.get_by_test_id("check")).to_contain_text("equals the model's own output")


@pytest.mark.walk
def test_the_check_line_names_the_device_that_ran_in_each_layer(explorer: Locator) -> None:
    for layer in (0, 2):
        pick_head(explorer.page, 0, layer=layer)
        expect(explorer.get_by_test_id("check")).to_contain_text(f"L{layer}H")
        expect(explorer.get_by_test_id("check")).to_contain_text("The pass ran on the CPU.")


def test_a_layer_opens_in_place_and_the_rest_of_the_page_stays(explorer: Locator) -> None:
    page = explorer.page
    explorer.evaluate("element => { element.dataset.same = 'yes' }")
    pick_head(page, 2)
    page.get_by_role("rowheader", name="L2").click()  # at once: the head is not reported yet
    expect(explorer.get_by_test_id("readout")).to_contain_text("L2H2")
    page.wait_for_url(lambda url: parse_qs(urlsplit(url).query).get("place") == ["decoder.2.self"])
    expect(explorer.get_by_test_id("check")).to_contain_text("L2H2")
    page.get_by_test_id("head-2").press("ArrowUp")
    expect(explorer.get_by_test_id("readout")).to_contain_text("L1H2")
    expect(page.get_by_role("gridcell", name="L1H2")).to_be_focused()
    expect(page.get_by_test_id("heads").get_by_role("gridcell", selected=True)).to_have_text("H2")
    expect(page.get_by_test_id("head-picker")).to_contain_text("L1H2")
    expect(explorer).to_have_attribute("data-same", "yes")


def test_what_to_look_for_stands_there_while_the_examples_own_head_does(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/")
    look_for = page.get_by_text("What to look for.")
    expect(look_for).to_be_visible()
    pick_head(page, 7, layer=3)
    expect(look_for).to_have_count(0)


@pytest.mark.walk
def test_what_a_pass_makes_old_is_not_faded_frame_by_frame(open_page: Callable[..., Page]) -> None:
    page = open_page("/layer_norm")
    page.emulate_media(reduced_motion="no-preference")
    details = ".stExpander > details"
    for part in (".stElementContainer", details, f"{details} > summary"):
        seconds = page.locator(part).first.evaluate(
            """(element) => {
                element.style.transition = "opacity 1s ease-in 0.5s, border 1s";  // as Streamlit has it
                return getComputedStyle(element).transitionDuration;
            }"""
        )
        assert seconds == "0s", part


def test_the_whole_map_its_row_and_the_readout_are_on_one_screen(
    open_page: Callable[..., Page],
) -> None:
    words = "The old man gave the ball to the girl and she gave it to the dog that ran by the sea"
    page = open_page("/", text=words)
    explorer = page.get_by_test_id("explorer")
    expect(explorer).to_have_attribute("data-ready", "true")
    assert 20 <= int(explorer.get_attribute("data-queries") or 0) <= 24
    for part in ("figure", "top-keys", "readout"):
        box = page.get_by_test_id(part).bounding_box()
        assert box["y"] >= 0, part
        assert box["y"] + box["height"] <= 900, part


@pytest.mark.walk
def test_a_link_opens_a_score_as_a_sum_and_one_walks_its_circuit_back(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/", show="Why?")
    drawer = page.locator(".st-key-drawer")
    expect(page.get_by_text("16.99, is what L0H1 wrote at ·Tom")).to_be_visible()
    expect(more(page, "why")).to_contain_text("all 144 parts add up to 42.5195")
    page.keyboard.press("Escape")
    click_mark(drawer.locator(BARS).first, re.compile("16.9"))  # what L0H2 wrote to the key
    expect(drawer).to_contain_text("L0H2: ·Hill → Tom")
    expect(page.get_by_test_id("readout")).to_contain_text("L0H2")
    page.wait_for_url("**place=decoder.0.self**")
    drawer.get_by_role("button", name="← L1H7").click()
    expect(page.get_by_text("16.99, is what L0H1 wrote at ·Tom")).to_be_visible()
    show(page, "A sum of products")
    expect(drawer).to_contain_text("The model recorded")


def saved(page: Page, ending: str) -> bytes:
    """The picture as a file, by a button behind ⋯, which may be open still."""
    button = page.get_by_test_id(f"save-{ending}")
    if not button.is_visible():
        page.get_by_test_id("more").click()
    return download(page, button).path().read_bytes()


@pytest.mark.walk
def test_a_saved_picture_has_the_code_to_scan_of_its_view_where_it_is_asked_for(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/", text="Anna saw Tom and the cat", place="decoder.2.self", head=3)
    explorer = page.get_by_test_id("explorer")
    expect(explorer).to_have_attribute("data-painted", "true")

    plain = {ending: saved(page, ending) for ending in ("png", "svg")}
    assert b"code-to-scan" not in plain["svg"]
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_text("With a code to scan").click()
    link = page.get_by_test_id("stCode").first.inner_text()
    rows = code_to_scan(link)
    assert rows is not None
    page.keyboard.press("Escape")
    expect(explorer).to_have_attribute("data-scan", str(len(rows)))
    files = {ending: saved(page, ending) for ending in ("png", "svg", "pdf")}
    drawn = re.search(r'class="code-to-scan"[^>]* d="([^"]*)"', files["svg"].decode())
    assert drawn
    dark = {tuple(map(int, cell)) for cell in re.findall(r"M(\d+) (\d+)h", drawn[1])}
    assert dark == {
        (x, y) for y, row in enumerate(rows) for x, cell in enumerate(row) if cell == "1"
    }
    heights = [struct.unpack(">I", file[20:24])[0] for file in (plain["png"], files["png"])]
    assert heights[1] > heights[0] + 2 * len(rows)
    for file in files.values():
        assert check(certificate_in(file)).holds


def test_the_numbers_of_a_saved_picture_are_those_of_the_model(
    open_page: Callable[..., Page], subtests: pytest.Subtests
) -> None:
    for change in ({}, {"mask": "none"}, {"stage": "norm"}):
        with subtests.test(change=str(change)):
            page = open_page(
                "/", text="Anna saw Tom and the cat", place="decoder.2.self", head=3, **change
            )
            expect(page.get_by_test_id("explorer")).to_have_attribute("data-painted", "true")
            for ending in ("png", "svg", "pdf"):
                certificate = certificate_in(saved(page, ending))
                assert (certificate.place, certificate.head) == ("decoder.2.self", 3)
                assert len(certificate.panels) == {"mask": 3, "stage": 2}.get("".join(change), 1)
                verdict = check(certificate)
                assert verdict.holds, str(verdict)
                assert (
                    verdict.numbers
                    == sum(values.size for values in certificate.panels.values())
                    > 30
                )
