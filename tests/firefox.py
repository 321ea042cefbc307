"""Which Firefox the tests of the site drive."""

import os
import shutil

NAMES = ("firefox-esr", "firefox")


def path() -> str:
    """That of FIREFOX, else the first of these names on PATH. Raises FileNotFoundError without one."""
    found = os.environ.get("FIREFOX") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise FileNotFoundError("The tests need Firefox. Install it, or set FIREFOX to its path.")
    return found
