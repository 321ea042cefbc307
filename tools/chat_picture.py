"""`python -m tools.chat_picture` (`make screens`) takes docs/screens/chat.png: the picture in the frame of a
chat."""

from playwright.sync_api import Browser, expect

from bench.chromium import browsing
from model.system.files import write_whole
from tests import chromium
from tests.browser.chat.chat import Chat
from tools.screens import SCREENS, SETTLED, compact

PICTURE = SCREENS / "chat.png"
TEXT = "Tom Hill saw a red ball. Anna gave the ball to Tom"


def take(browser: Browser) -> bytes:
    page = browser.new_page(viewport={"width": 720, "height": 1340}, color_scheme="light")
    page.set_default_timeout(chromium.MILLISECONDS_TO_APPEAR)
    chat = Chat(page)
    frame, _ = chat.show(text=TEXT, layer="decoder.1.self", head=7)
    expect(frame.get_by_test_id("explorer")).to_have_attribute("data-ready", "true")
    page.wait_for_timeout(SETTLED)
    try:
        return compact(page.screenshot(animations="disabled"))
    finally:
        chat.close()


def main() -> None:
    expect.set_options(timeout=chromium.MILLISECONDS_TO_APPEAR)
    with browsing() as browser:
        write_whole(PICTURE, take(browser))
    print(f"{PICTURE.name} {PICTURE.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
