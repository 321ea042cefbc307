"""Faults as a visitor meets them: what is said, what stays, and that everybody else goes on."""

import shutil
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Locator, Page, WebSocketRoute, expect

from model.loading.shipped import ASSETS, WEIGHTS
from tests.browser import conftest
from tests.browser.controls import open_by_menu, pick_head, show
from tests.browser.explorer.stage import AFTER_THE_DELAY
from tests.server import HEALTHY, Server, serving
from tools.menu import link_to
from viz.state.navigation import entry

TYPED = "Anna saw the red bag"
MISTAKE = "because of an error in the app"
pytestmark = [pytest.mark.process, pytest.mark.xdist_group("faults")]  # one worker, one server


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with planted faults; the file of one shipped model is cut short."""
    assets = tmp_path_factory.mktemp("assets") / "assets"
    shutil.copytree(ASSETS, assets)
    weights = assets / "stories" / WEIGHTS
    weights.write_bytes(weights.read_bytes()[:1000])
    log, program = tmp_path_factory.mktemp("log") / "server.log", ("tests.browser.faulty_server",)
    more = {"FAULTY_ASSETS": str(assets)}
    with serving(log, more=more, program=program, until=HEALTHY) as one:
        yield one


@pytest.fixture(scope="module")
def server(served: Server) -> str:
    return served.address


def box(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Your sentence")


def enter(page: Page, text: str) -> None:
    conftest.wait_until_settled(page)
    box(page).fill(text)
    box(page).press("Enter")


def tokens(page: Page) -> Locator:
    """The tokens stand over the map."""
    return page.get_by_test_id("explorer")


def test_a_part_that_breaks_is_told_without_details_and_the_rest_lives(
    open_page: Callable[..., Page],
    fresh_page: Callable[..., Page],
    served: Server,
    troubles: list[str],
) -> None:
    page = open_page("/tokens", text="please BREAK now")
    expect(page.get_by_text(MISTAKE)).to_be_visible()
    expect(box(page)).to_have_value("please BREAK now")
    for secret in ("KeyError", "Traceback", ".py", "viz/"):
        assert secret not in page.locator("body").inner_text()
    show(page, "Two tokenizers")
    expect(page.get_by_text(MISTAKE)).to_have_count(0)
    open_by_menu(page, "Explore")
    expect(page.get_by_text(MISTAKE)).to_be_visible()  # no beat, no view: the end of the script
    expect(page.get_by_test_id("stException")).to_have_count(0)
    other = open_page("/tokens", on=fresh_page(), text=TYPED)
    expect(other.get_by_text(MISTAKE)).to_have_count(0)
    enter(page, TYPED)
    expect(page.get_by_text(MISTAKE)).to_have_count(0)
    expect(page.get_by_test_id("explorer")).to_have_attribute("data-ready", "true")
    said = served.log.read_text()
    assert "please BREAK now" not in said
    assert "KeyError" in said


def test_no_memory_for_a_pass_leaves_sentence_and_server(
    open_page: Callable[..., Page], fresh_page: Callable[..., Page]
) -> None:
    long = "the cat saw the dog and " * 20
    page = open_page("/", text=long)
    expect(page.get_by_text("There is not enough memory for")).to_be_visible()
    expect(box(page)).to_have_value(long)
    other = open_page("/", on=fresh_page(), text=TYPED)
    expect(tokens(other)).to_contain_text("bag")
    enter(page, TYPED)
    expect(tokens(page)).to_contain_text("bag")


def test_a_shipped_model_that_was_cut_short_is_named_and_another_opens(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/", text=TYPED, model="stories")
    expect(page.get_by_text("The file model.safetensors of stories is damaged")).to_be_visible()
    expect(box(page)).to_have_value(TYPED)
    page.get_by_test_id("stSelectbox").filter(has_text="Model").get_by_role("combobox").click()
    page.get_by_role("option", name="House GPT").click()
    expect(tokens(page)).to_contain_text("bag")
    expect(box(page)).to_have_value(TYPED)


def test_back_and_forward_go_through_pages_and_views(
    open_page: Callable[..., Page], settle: Callable[..., Page]
) -> None:
    page = open_page("/", text=TYPED, query=4)
    explorer = page.get_by_test_id("explorer")
    expect(explorer).to_have_attribute("data-ready", "true")
    first = explorer.get_attribute("data-head") or ""
    pick_head(page, 1)
    page.wait_for_url("**head=1**")
    settle()
    open_by_menu(page, "Tokens")
    page.wait_for_url("**/tokens**head=1**")
    settle()
    enter(page, "the dog ran")
    page.wait_for_url("**text=the+dog+ran**")
    settle()
    page.go_back()
    expect(box(page)).to_have_value(TYPED)
    settle()
    page.go_back()
    settle()
    if "/tokens" in page.url:  # entered with the head of before, which was then mended
        page.go_back()
    expect(explorer).to_have_attribute("data-head", "1")
    expect(box(page)).to_have_value(TYPED)
    settle()
    page.go_back()
    expect(explorer).to_have_attribute("data-head", first)
    settle()
    page.go_forward()
    expect(explorer).to_have_attribute("data-head", "1")


def test_two_tabs_of_one_browser_keep_their_own_sentences_through_a_reload(
    open_page: Callable[..., Page],
) -> None:
    one = open_page("/", text=TYPED)
    two = one.context.new_page()
    open_page("/", on=two, text="the dog ran to the river")
    enter(one, "Anna gave the ball to Tom")
    expect(tokens(one)).to_contain_text("Tom")
    expect(tokens(two)).to_contain_text("river")
    for tab, word in ((one, "Tom"), (two, "river")):
        tab.reload()
        expect(tokens(tab)).to_contain_text(word)
    link = link_to(one, entry("pages/layer_norm.py"))
    with one.context.expect_page() as opened:
        link.click(modifiers=["Control"])
    three = opened.value
    expect(box(three)).to_have_value("Anna gave the ball to Tom")


def test_a_dropped_connection_comes_back_with_everything_in_place(
    open_page: Callable[..., Page], fresh_page: Callable[..., Page], troubles: list[str]
) -> None:
    sockets: list[WebSocketRoute] = []
    page = fresh_page()

    def connect(socket: WebSocketRoute) -> None:
        socket.connect_to_server()
        sockets.append(socket)

    page.route_web_socket("**/_stcore/stream", connect)
    open_page("/", on=page, text=TYPED)
    pick_head(page, 1)
    page.wait_for_url("**head=1**")
    box(page).fill("the dog ran to the river")
    sockets[0].close(code=3001, reason="dropped")
    expect(page.locator("[data-test-connection-state=CONNECTED]")).to_have_count(0)
    expect(page.locator(conftest.QUIET_APP)).to_be_attached()
    assert len(sockets) > 1
    expect(box(page)).to_have_value("the dog ran to the river")
    expect(page.get_by_test_id("explorer")).to_have_attribute("data-head", "1")
    expect(tokens(page)).to_contain_text("bag")
    box(page).press("Enter")
    expect(tokens(page)).to_contain_text("river")
    troubles.clear()  # the browser logs the lost connection


def test_a_server_that_starts_anew_shows_open_pages_the_same_view(
    page: Page, open_page: Callable[..., Page], served: Server, troubles: list[str]
) -> None:
    open_page("/", text=TYPED, scale="1.0")
    pick_head(page, 1)
    page.wait_for_url("**head=1**")
    box(page).fill("the dog ran to the river")
    served.end()
    expect(page.get_by_text("Connecting")).to_be_visible()
    served.start()
    served.wait(HEALTHY)
    expect(page.locator(conftest.QUIET_APP)).to_be_attached()
    expect(page.get_by_test_id("explorer")).to_have_attribute("data-head", "1")
    expect(tokens(page)).to_contain_text("bag")
    expect(box(page)).to_have_value("the dog ran to the river")
    box(page).press("Enter")
    expect(tokens(page)).to_contain_text("river")
    page.wait_for_url("**scale=1.0**")
    troubles.clear()  # the browser logs every address that did not answer


def test_a_server_that_starts_anew_leaves_the_cell_of_an_open_page(
    page: Page, open_page: Callable[..., Page], served: Server, troubles: list[str]
) -> None:
    open_page("/", text=TYPED, scale="1.0", query=4, key=0, head=1)
    explorer = page.get_by_test_id("explorer")
    served.end()
    expect(page.get_by_text("Connecting")).to_be_visible()
    served.start()
    served.wait(HEALTHY)
    expect(page.locator(conftest.QUIET_APP)).to_be_attached()
    pick_head(page, 2)  # the first run of a new session
    page.evaluate(AFTER_THE_DELAY, "unanswered")
    conftest.wait_until_settled(page)
    pick_head(page, 3)
    page.wait_for_url("**head=3**")
    conftest.wait_until_settled(page)
    expect(explorer).to_have_attribute("data-query", "4")
    expect(explorer).to_have_attribute("data-key", "0")
    troubles.clear()
