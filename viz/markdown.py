"""Text for places that read Markdown. Pure."""

import re


def plain(text: str) -> str:
    """The text with everything that Markdown would read as a sign escaped, on one line."""
    escaped = re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", text)
    return " ".join(escaped.split())
