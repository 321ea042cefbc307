"""Text for places that read Markdown. Pure."""

import re

from viz.notation.labels import token_label
from viz.notation.visible import WORD_JOINER, visible

_SIGNS = re.compile(r"([!-/:-@\[-`{-~])")
# Made into links, icons, emoji and arrows even where each sign is escaped.
_REPLACED = re.compile(r":(?=\S)|@|www(?=\.)|[<>~-](?=[-=>])", re.IGNORECASE)


def plain(text: str) -> str:
    """The text with everything that Markdown would read as a sign escaped, on one line, and nothing
    hidden in it.

    A word joiner, which takes no room, parts what Streamlit would replace all the same: addresses,
    icons, emoji names and arrows.
    """
    shown = visible(" ".join(text.split()))
    return _SIGNS.sub(r"\\\1", _REPLACED.sub(rf"\g<0>{WORD_JOINER}", shown))


def bold_token(text: str, position: int | None = None) -> str:
    """A token in bold, "**·cat**", and where it stands: "**·cat** (position 3)"."""
    place = "" if position is None else f" (position {position})"
    return f"**{plain(token_label(text))}**{place}"
