"""Which Chromium the tests and the benchmarks drive, and how it is started."""

import os
import shutil
from typing import Any

from playwright.sync_api import Browser, Page

MILLISECONDS_TO_APPEAR = 240_000  # a machine shared with others may be slow; the laws are the same
NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


def path() -> str | None:
    """That of CHROMIUM, else the first of these names on PATH; None without one."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def new_page(browser: Browser, **options: Any) -> Page:
    """A page by itself, as patient as all others."""
    page = browser.new_page(**options)
    page.set_default_timeout(MILLISECONDS_TO_APPEAR)
    return page
