"""A page that does what a program for chats does with an MCP App; the server is this process."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from anyio.from_thread import start_blocking_portal
from mcp import Client
from playwright.sync_api import FrameLocator, Page, Route

from viz.chat.answers import Answers
from viz.chat.server import ChatServer

ADDRESS = "https://chat.test"
SCRIPT = (Path(__file__).parent / "page.js").read_text(encoding="utf-8")
BODY = """<!doctype html><html><head><style>body { margin: 16px; background: %s }
iframe { width: 100%%; height: 80px; border: 0 }</style></head><body></body></html>"""
COLOURS = {"light": "white", "dark": "#111"}


class Chat:
    """A page with pictures of one server, and what an assistant would call."""

    def __init__(self, page: Page, *, theme: str = "light") -> None:
        self.page = page
        self.asked: list[str] = []  # addresses beyond the page
        self._theme = theme
        self._ending = ExitStack()
        portal = self._ending.enter_context(start_blocking_portal())
        server = ChatServer(Answers({"house-gpt": "house-gpt"}))
        self._client = self._ending.enter_context(portal.wrap_async_context_manager(Client(server)))
        self._portal = portal
        page.on("request", lambda request: self.asked.append(request.url))
        page.route("**/*", self._serve)
        page.expose_function("call", self.call)
        page.goto(ADDRESS)
        page.evaluate(SCRIPT)

    def call(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        """A tool's result, as it is sent."""
        result = self._portal.call(self._client.call_tool, name, given)
        return result.model_dump(mode="json", by_alias=True, exclude_none=True)

    def show(self, **given: Any) -> tuple[FrameLocator, str]:
        """Calls open_attention; the frame of its picture, and the key to its state."""
        tools = {tool.name: tool for tool in self._portal.call(self._client.list_tools).tools}
        about = tools["open_attention"].meta or {}
        read = self._portal.call(self._client.read_resource, about["ui"]["resourceUri"])
        (app,) = read.model_dump(mode="json", by_alias=True)["contents"]
        result = self.call("open_attention", given)
        sources = " ".join(app["_meta"]["ui"]["csp"]["resourceDomains"])
        html = app["text"].replace("<head>", f"<head>{policy(sources)}", 1)
        shown = {"html": html, "given": given, "result": result, "theme": self._theme}
        self.page.evaluate("shown => window.show(shown)", shown)
        frame = self.page.frame_locator("iframe >> nth=-1")
        return frame, result["structuredContent"]["state_id"]

    def state(self, state_id: str) -> dict[str, Any]:
        """What the assistant reads of a picture."""
        read: dict[str, Any] = self.call("anywidget_state", {"state_id": state_id})
        state: dict[str, Any] = read["structuredContent"]["state"]
        return state

    def wait_for_state(self, **wanted: Any) -> dict[str, Any]:
        """What the app has told the assistant, once it has all of this."""
        holds = """(wanted) => {
            const has = (state, part) => Object.entries(part).every(([name, value]) =>
                value instanceof Object ? has(state?.[name], value) : state?.[name] === value);
            return has(window.told(), wanted) && window.told();
        }"""
        told: dict[str, Any] = self.page.wait_for_function(holds, arg=wanted).json_value()
        return told

    def close(self) -> None:
        self.page.close()
        self._ending.close()

    def _serve(self, route: Route) -> None:
        if route.request.url.removesuffix("/") == ADDRESS:
            route.fulfill(body=BODY % COLOURS[self._theme], content_type="text/html")
        else:
            route.abort()


def policy(sources: str) -> str:
    """The content security policy under which a chat shows an app that asks for these sources."""
    rules = (
        "default-src 'none'",
        f"script-src 'unsafe-inline' {sources}",
        f"style-src 'unsafe-inline' {sources}",
        f"img-src data: {sources}",
        f"font-src {sources}",
        "connect-src 'none'",
    )
    return f'<meta http-equiv="Content-Security-Policy" content="{"; ".join(rules)}">'
