"""Pages that need no server of ours: what each of them asks for is answered by the test itself."""

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from playwright.sync_api import Browser

from tests import chromium


class ClosedPage(Protocol):
    asked: list[str]  # addresses beyond the page

    def close(self) -> None: ...


P = TypeVar("P", bound=ClosedPage)


def closed_pages(
    browser: Browser, kind: Callable[..., P], address: str, width: int
) -> Iterator[Callable[..., P]]:
    """Gives a function that opens such a page. At the end they must have raised nothing and asked for
    nothing."""
    opened: list[P] = []
    troubles: list[str] = []

    def new(*, width: int = width, **more: object) -> P:
        page = chromium.new_page(browser, viewport={"width": width, "height": 900})
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on(
            "console", lambda said: troubles.append(said.text) if said.type == "error" else None
        )
        opened.append(kind(page, **more))
        return opened[-1]

    yield new
    asked = [asked for one in opened for asked in one.asked]
    for one in opened:
        one.close()
    assert troubles == []
    local = ("blob:", "data:", f"{address}/")
    assert [one for one in asked if not one.startswith(local)] == []
