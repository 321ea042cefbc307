"""Chats, for the tests of the picture in them."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.chat.chat import ADDRESS, Chat
from tests.browser.closed_pages import closed_pages


@pytest.fixture
def open_chat(browser: Browser) -> Iterator[Callable[..., Chat]]:
    """Call it for a chat."""
    yield from closed_pages(browser, Chat, ADDRESS, width=720)
