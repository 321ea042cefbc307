"""The app in a frame of another origin's page: refused unless its owner named that origin, and then alive."""

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import FrameLocator, Page, expect

from tests.browser.conftest import AT_REST, QUIET_APP, wait_until_settled
from tests.browser.explorer.stage import AFTER_THE_DELAY
from tests.local_server import Answer, LocalServer, answering
from tests.server import HEALTHY, serving

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("embedding")]  # one worker, one server
TEXT = "The keys to the cabinet are on the table"


@dataclass(frozen=True)
class Host:
    """A site of somebody else's, on this machine by two names: two origins. Its page is one frame."""

    port: int
    app: str  # the server that lets the first of them frame it

    def address(self, name: str = "localhost") -> str:
        return f"http://{name}:{self.port}"


class _FramingPage(Answer):
    def answer(self) -> None:
        asked = parse_qs(urlsplit(self.path).query)
        page = "<!doctype html><title>A page of another site</title><body style='margin: 0'>"
        style = "border: 0; width: 100vw; height: 100vh"
        for source in map(html.escape, asked.get("app", [])):
            page += f'<iframe src="{source}" style="{style}"></iframe>'
        self.whole(200, page.encode(), {"Content-Type": "text/html; charset=utf-8"})


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    log = tmp_path_factory.mktemp("framed") / "log"
    with answering(LocalServer(_FramingPage)) as site:
        port = site.server_port
        allowed = {"ATTENTION_FRAME_ANCESTORS": f"http://localhost:{port}"}
        with serving(log, more=allowed, until=HEALTHY) as app:
            yield Host(port, app.address)


@pytest.fixture
def framing(
    fresh_page: Callable[..., Page], host: Host, troubles: list[str]
) -> Iterator[Callable[..., Page]]:
    """Opens a page of another site that frames a server; what is asked for there is no trouble of ours."""

    def open_(source: str, *, name: str = "localhost") -> Page:
        page = fresh_page(viewport={"width": 800, "height": 500})
        page.goto(f"{host.address(name)}/?{urlencode({'app': source})}")
        return page

    yield open_
    ours = {
        urlsplit(host.app).netloc,
        *(f"{name}:{host.port}" for name in ("localhost", "127.0.0.1")),
    }
    beyond = "request beyond our server: "
    troubles[:] = [
        line
        for line in troubles
        if not line.startswith(beyond) or urlsplit(line.removeprefix(beyond)).netloc not in ours
    ]


def framed(page: Page) -> FrameLocator:
    inside = page.frame_locator("iframe")
    inside.locator(QUIET_APP).wait_for(state="attached")
    return inside


@pytest.mark.parametrize("case", ["nobody is named", "another origin is named"])
def test_a_page_of_an_origin_that_is_not_named_frames_nothing(
    case: str, framing: Callable[..., Page], host: Host, server: str, troubles: list[str]
) -> None:
    app, name = (server, "localhost") if case == "nobody is named" else (host.app, "127.0.0.1")
    page = framing(f"{app}/?embed=true", name=name)
    expect(page.frame_locator("iframe").locator("[data-testid=stApp]")).to_have_count(0)
    assert any("frame-ancestors" in line for line in troubles)
    troubles.clear()


def test_the_whole_map_is_in_sight_in_a_small_frame_without_menu_or_cookie(
    framing: Callable[..., Page], host: Host
) -> None:
    page = framing(f"{host.app}/?embed=true")
    app = framed(page)
    for width, height in ((800, 500), (390, 600)):
        page.set_viewport_size({"width": width, "height": height})
        figure = app.get_by_test_id("figure")
        expect(figure).to_be_in_viewport(ratio=1)
        for gone in ("stSidebar", "stExpandSidebarButton", "stMainMenu"):
            expect(app.get_by_test_id(gone)).to_be_hidden()
        expect(app.get_by_role("link", name="Open in the app")).to_be_in_viewport()
    assert page.context.cookies(host.app) == []


def test_the_line_to_copy_frames_the_view_where_heads_and_pages_are_switched_and_a_link_leads_out(
    framing: Callable[..., Page], fresh_page: Callable[..., Page], host: Host
) -> None:
    visitor = fresh_page(base_url=host.app)
    visitor.goto(f"/?{urlencode({'text': TEXT, 'head': 3})}")
    wait_until_settled(visitor)
    visitor.get_by_role("button", name="Save", exact=True).click()
    line = visitor.locator("[data-testid=stCode]", has_text="<iframe").inner_text()
    read = "line => new DOMParser().parseFromString(line, 'text/html').querySelector('iframe').src"
    page = framing(visitor.evaluate(read, line))
    app = framed(page)
    explorer = app.get_by_test_id("explorer")
    expect(explorer).to_have_attribute("data-head", "3")
    app.get_by_test_id("head-2").click()
    expect(explorer).to_have_attribute("data-head", "2")
    page.frames[1].evaluate(AFTER_THE_DELAY, "unanswered")  # the server is told of the head
    page.frames[1].evaluate(AT_REST, QUIET_APP)
    app.get_by_role("link", name="Tokens →").click()
    expect(app.get_by_role("radiogroup", name="Show")).to_be_attached()
    way_out = app.get_by_role("link", name="Open in the app")
    expect(way_out).to_have_attribute("href", re.compile(r"[?&]head=2(&|$)"))
    with page.context.expect_page() as opened:
        way_out.click()
    assert parse_qs(urlsplit(page.frames[1].url).query)["embed"] == ["true"]
    whole = opened.value
    expect(whole.get_by_test_id("stSidebar")).to_be_visible()
    asked = parse_qs(urlsplit(whole.url).query)
    assert urlsplit(whole.url).path == "/tokens"
    assert (asked["text"], asked["head"], "embed" in asked) == ([TEXT], ["2"], False)
