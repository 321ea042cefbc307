"""A page without Jupyter that shows a widget as anywidget would, and its kernel: this process."""

import base64
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ipywidgets import Widget
from ipywidgets.widgets.widget import _put_buffers, _remove_buffers
from playwright.sync_api import Locator, Page, Route, expect

from tests import chromium
from viz.notebook import AttentionExplorer
from viz.notebook.library import library

ADDRESS = "http://notebook.test"
SCRIPT = (Path(__file__).parent / "page.js").read_text(encoding="utf-8")
BODY = """<!doctype html><html><body style="margin:16px; font-family:sans-serif; background:%s; color:%s">
<div class="cell"></div></body></html>"""
# Anywidget runs modules from blob: addresses, and so do we. Nothing is evaluated, nothing fetched.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' blob:; style-src 'unsafe-inline'; img-src data:; "
    "font-src data:"
)
LIGHT, DARK = ("white", "#222"), ("#111", "#eee")


class Comm:
    """Keeps what a widget sends, for the page."""

    def __init__(self, widget: Widget) -> None:
        self.comm_id = widget.model_id
        self.sent: list[dict[str, Any]] = []
        self.bytes = 0

    def send(self, data: Mapping[str, Any], buffers: Any = None, **rest: Any) -> None:
        self.bytes += sum(map(len, buffers or ()))
        message = {"id": self.comm_id, "method": data["method"], "content": data.get("content")}
        if data["method"] == "update":
            message |= described(dict(data["state"]), data["buffer_paths"], buffers)
        if data["method"] != "echo_update":
            self.sent.append(message)

    def on_msg(self, take: object) -> None:
        """The page tells the widget itself."""

    def close(self, *given: Any, **more: Any) -> None:
        """Nothing is kept open."""

    def taken(self) -> list[dict[str, Any]]:
        sent, self.sent = self.sent, []
        return sent


class Notebook:
    """A page, and the widgets in it."""

    def __init__(
        self, page: Page, *, colours: tuple[str, str] = LIGHT, kernel: bool = True
    ) -> None:
        self.page = page
        self.asked: list[str] = []  # addresses beyond the page
        self.comms: dict[str, tuple[Widget, Comm]] = {}
        page.on("request", lambda request: self.asked.append(request.url))
        page.route("**/*", lambda route: self._serve(route, colours))
        if kernel:
            page.expose_function("tell", self._told)
        page.goto(ADDRESS)
        page.add_script_tag(content=SCRIPT)

    def close(self) -> None:
        self.page.close()

    def _serve(self, route: Route, colours: tuple[str, str]) -> None:
        is_page = route.request.url.removesuffix("/") == ADDRESS
        if is_page:
            heads = {"Content-Type": "text/html", "Content-Security-Policy": POLICY}
            route.fulfill(body=BODY % colours, headers=heads)
        else:
            route.abort()

    def wait_until(self, holds: str, arg: object = None) -> None:
        """Waits until a function of the page gives true. Playwright's own waiting would evaluate its text."""
        deadline = time.monotonic() + chromium.MILLISECONDS_TO_APPEAR / 1000
        while not self.page.evaluate(holds, arg):
            assert time.monotonic() < deadline, f"This did not come about: {holds} with {arg}"
            self.page.wait_for_timeout(20)

    def _told(self, model: str, message: dict[str, Any]) -> list[dict[str, Any]]:
        """What the kernel answers to what the browser tells."""
        widget, comm = self.comms[model]
        if message["method"] == "update":
            state = message["state"]
            _put_buffers(state, [], [])
            widget.set_state(state)
        else:
            widget._handle_custom_msg(message["content"], [])
        return comm.taken()

    def show(self, widget: AttentionExplorer, *, has_library: bool = True) -> Locator:
        """Shows a widget in a new cell; returns its explorer once it is drawn."""
        described = self.saved(widget, has_library=has_library)
        comm = Comm(widget)
        widget.comm = comm
        self.comms[widget.model_id] = widget, comm
        return self.reopen(widget.model_id, described)

    @staticmethod
    def saved(widget: AttentionExplorer, *, has_library: bool = True) -> dict[str, Any]:
        """The state of a widget as a notebook keeps it."""
        shared = [library()] if has_library else []
        return {
            one.model_id: described(*_remove_buffers(one.get_state())) for one in [widget, *shared]
        }

    def reopen(self, model: str, state: dict[str, Any]) -> Locator:
        self.page.evaluate("state => window.open_models(state)", state)
        self.page.evaluate(
            """async (id) => {
                const cell = document.body.appendChild(document.createElement("div"));
                cell.dataset.testid = `cell-${id}`;
                window.end = await window.show(id, cell);
            }""",
            model,
        )
        return self.ready(model)

    def ready(self, model: str) -> Locator:
        shown = self.page.get_by_test_id(f"cell-{model}").last.get_by_test_id("explorer")
        expect(shown).to_have_attribute("data-ready", "true")
        return shown

    def deliver(self, widget: AttentionExplorer) -> None:
        """Brings the page what Python has changed."""
        self.page.evaluate(
            "messages => window.take(messages)", self.comms[widget.model_id][1].taken()
        )


def described(state: dict[str, Any], paths: Any, buffers: Any) -> dict[str, Any]:
    """State with its buffers, in a form that a page can take."""
    texts = [base64.b64encode(bytes(buffer)).decode() for buffer in buffers or ()]
    named = {path[0]: text for path, text in zip(paths, texts, strict=True)}
    return {"state": state, "buffers": named}
