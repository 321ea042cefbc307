"""A small real profile to look at."""

import tempfile
from functools import cache
from pathlib import Path

from model.profile import Profile, profile

TEXT = (
    "Tom Hill saw a red ball. Anna gave the ball to Tom.\nThe old man sat on the mat, and Tom Hill saw it.\n"
    * 12
)


@cache
def small_profile(model: str = "stories") -> Profile:
    """Of a small model, over a few lines."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "lines.txt"
        corpus.write_text(TEXT, encoding="utf-8")
        return profile(model, corpus)
