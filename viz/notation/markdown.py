"""Text escaped for Markdown."""

import re

from viz.notation.labels import WORD_JOINER, isolated, token_label, visible

_SIGNS = re.compile(r"([!-/:-@\[-`{-~])")
# Streamlit makes links, icons, emoji and arrows of these even where each sign is escaped.
_REPLACED = re.compile(r":(?=\S)|@|www(?=\.)|[<>~-](?=[-=>])", re.IGNORECASE)


def plain(text: str) -> str:
    """The text on one line, with every sign of Markdown escaped, every hidden character visible and
    right-to-left letters isolated.

    A word joiner, which has no width, splits what Streamlit would replace in spite of that: addresses,
    icons, emoji names and arrows.
    """
    shown = isolated(visible(" ".join(text.split())))
    return _SIGNS.sub(r"\\\1", _REPLACED.sub(rf"\g<0>{WORD_JOINER}", shown))


def bold_token(text: str, position: int | None = None) -> str:
    """A token in bold, "**·cat**", and where it stands: "**·cat** (position 3)"."""
    place = "" if position is None else f" (position {position})"
    return f"**{plain(token_label(text))}**{place}"
