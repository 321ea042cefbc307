"""Chats, for the tests of the picture in them."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser

from tests import chromium
from tests.browser.chat.chat import ADDRESS, Chat


@pytest.fixture
def open_chat(browser: Browser) -> Iterator[Callable[..., Chat]]:
    """Call it for a chat. At the end its page must have raised nothing and asked for nothing."""
    opened: list[Chat] = []
    troubles: list[str] = []

    def new(*, width: int = 720, **more: str) -> Chat:
        page = chromium.new_page(browser, viewport={"width": width, "height": 900})
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on(
            "console", lambda said: troubles.append(said.text) if said.type == "error" else None
        )
        opened.append(Chat(page, **more))
        return opened[-1]

    yield new
    asked = [address for chat in opened for address in chat.asked]
    for chat in opened:
        chat.page.close()
        chat.close()
    assert troubles == []
    local = ("blob:", "data:", f"{ADDRESS}/")
    assert [address for address in asked if not address.startswith(local)] == []
