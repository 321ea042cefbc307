"""Labels of tokens that are safe to draw, and which positions get a label.

Pictures place cells by position, so equal tokens keep their own rows and columns.
"""

import html
import math
import re
import unicodedata
from collections.abc import Iterable

from viz.notation.visible import WORD_JOINER, visible

LABELS = 32  # more labels on one axis make a picture slow and illegible
LONGEST = 200  # characters of a label
_TAG = re.compile(r"<[^<>]*>")


def token_label(text: str, limit: int = LONGEST) -> str:
    """A token's text as plain text with nothing hidden, for `textContent`, canvases and table cells.

    A leading space becomes "·", other spaces "␣", a line break "⏎"; control, bidi, zero-width and
    unpaired characters are spelled out, for instance ‹U+202E›; nothing at all becomes "∅".
    Beyond `limit` characters the label ends in "…".
    """
    if not text:
        return "∅"
    leading = len(text) > 1 and text[0] == " " and text[1] != " "
    label = ("·" if leading else "") + visible((text[1:] if leading else text).replace(" ", "␣"))
    if unicodedata.category(label[0])[0] == "M":
        label = "◌" + label
    return label if len(label) <= limit else label[: limit - 1] + "…"


def numbered_labels(texts: Iterable[str], limit: int = LONGEST) -> list[str]:
    """Tokens with their positions, so that equal ones differ: "3 ·cat"."""
    return [f"{position} {token_label(text, limit)}" for position, text in enumerate(texts)]


def plotly_label(text: str, limit: int = LONGEST) -> str:
    """A token's text for Plotly's ticks, titles and hover texts, which are a kind of HTML.

    Tags and entities are escaped. A word joiner after "#" keeps Streamlit from reading "#000001" as
    a colour of its theme.
    """
    return plotly_words(token_label(text, limit))


def plotly_words(text: str) -> str:
    """Our own words for the same places: escaped, with their spaces."""
    return html.escape(text, quote=False).replace("#", "#" + WORD_JOINER)


def drawn_letters(drawn: str) -> str:
    """The letters one sees when Plotly draws this: no tags, entities or joiners."""
    return html.unescape(_TAG.sub("", drawn)).replace(WORD_JOINER, "")


def tick_positions(count: int, limit: int = LABELS) -> tuple[int, ...]:
    """At most `limit` evenly spaced positions of `count`, from 0 on."""
    if count <= 0:
        return ()
    return tuple(range(0, count, math.ceil(count / limit)))


def dimension_ticks(count: int, limit: int) -> tuple[int, ...]:
    """At most `limit` of so many dimensions, from 0 on: multiples of a power of two."""
    step = 1
    while step * limit < count:
        step *= 2
    return tuple(range(0, count, step))
