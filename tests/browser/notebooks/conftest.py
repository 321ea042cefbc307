"""A visitor of a notebook program, in a browser that reaches that program and nothing else."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests import chromium
from tests.browser.conftest import SCREEN

ELSEWHERE = r"(?:https?|wss?)://"


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Call it with an address for a page of it. Whatever the page asks of another server is refused, and the
    test fails at its end. Keywords go to the browser context."""
    contexts: list[BrowserContext] = []
    refused: list[str] = []

    def opened(address: str, **options: object) -> Page:
        context = browser.new_context(**(SCREEN | {"service_workers": "block"} | options))  # type: ignore[arg-type]
        contexts.append(context)
        own = re.match(rf"{ELSEWHERE}[^/]+", address)
        here = (
            rf"(?!{re.escape(own[0])})(?!{re.escape(own[0].replace('http', 'ws', 1))})"
            if own
            else ""
        )
        elsewhere = re.compile(rf"^{here}{ELSEWHERE}")

        def refuse(route: object) -> None:
            refused.append(route.request.url)  # type: ignore[attr-defined]
            route.abort()  # type: ignore[attr-defined]

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
