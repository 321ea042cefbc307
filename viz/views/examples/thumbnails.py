"""The heads of the examples, made small beforehand, so that the page loads no model.

`python -m tools.thumbnails` writes them; a test compares each with the weights of its model.
"""

import json
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("thumbnails.json")


@cache
def thumbnails() -> dict[str, list[str]]:
    """The rows of each example's head, by the example's title, as `viz.figures.svg` takes them."""
    rows: dict[str, list[str]] = json.loads(FILE.read_text(encoding="utf-8"))
    return rows
