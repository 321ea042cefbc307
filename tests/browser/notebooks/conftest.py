"""A visitor of a notebook program, in a browser that reaches that program and nothing else."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route

from tests import chromium
from tests.browser.conftest import SCREEN

ELSEWHERE = r"(?:https?|wss?)://"


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Call it with an address for a page of it. Whatever the page asks of another server is refused, and the
    test fails at its end; but for what lies in a folder `lent` of this machine by another server's address.
    Other keywords go to the browser context."""
    contexts: list[BrowserContext] = []
    refused: list[str] = []

    def opened(address: str, *, lent: tuple[str, Path] | None = None, **options: object) -> Page:
        context = browser.new_context(**(SCREEN | {"service_workers": "block"} | options))  # type: ignore[arg-type]
        contexts.append(context)
        own = re.match(rf"{ELSEWHERE}[^/]+", address)
        here = (
            rf"(?!{re.escape(own[0])})(?!{re.escape(own[0].replace('http', 'ws', 1))})"
            if own
            else ""
        )
        elsewhere = re.compile(rf"^{here}{ELSEWHERE}")

        def refuse(route: Route) -> None:
            asked = route.request.url
            if lent is not None and asked.startswith(lent[0]):
                file = lent[1] / asked.removeprefix(lent[0])
                if file.is_file():
                    route.fulfill(path=file, headers={"Access-Control-Allow-Origin": "*"})
                    return
            refused.append(asked)
            route.abort()

        context.route(elsewhere, refuse)
        page = context.new_page()
        page.set_default_timeout(chromium.MILLISECONDS_TO_APPEAR)
        page.on(
            "websocket", lambda socket: elsewhere.match(socket.url) and refused.append(socket.url)
        )
        page.on("pageerror", lambda error: refused.append(f"uncaught: {error}"))
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert refused == []
