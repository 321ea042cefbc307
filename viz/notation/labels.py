"""Tokens as text that is safe to draw, in which nothing is hidden; which positions of an axis get a label.

Figures place cells by position, so equal tokens keep their own rows and columns.
"""

import html
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

LABELS = 32  # more labels on one axis make a picture slow and illegible
LONGEST = 200  # characters of a label
_TAG = re.compile(r"<[^<>]*>")
WORD_JOINER = "\u2060"  # has no width: splits signs that would mean something side by side
MARKS = 4  # accents on one letter: no script uses more, and a higher stack covers its neighbours
_NAMED = {"\n": "⏎", "\r": "␍", "\t": "⇥", "\x7f": "␡"}
_IGNORABLE = (
    frozenset(  # what Unicode lets a program ignore and Python calls printable, and a blank
        "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
    ).union(map(chr, range(0xFE00, 0xFE10)), map(chr, range(0xE0100, 0xE01F0)))
)
# Latin letters, punctuation, arrows and signs: what is printable here is no accent and nothing ignorable.
_NO_MARKS = re.compile("[\u0000-\u02ff\u2010-\u205e\u2190-\u27ff]*")
_EMOJI_STYLE = "\ufe0e\ufe0f"  # part of how a symbol is drawn
_ISOLATE, _END = "\u2068", "\u2069"
_RIGHT_TO_LEFT = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
_RUN = re.compile(f"[{_RIGHT_TO_LEFT}]+(?:[ ␣]+[{_RIGHT_TO_LEFT}]+)*")
_PIECE = "##"  # before a word piece that goes on with the word


@lru_cache(maxsize=4096)  # a run of a page asks for each label of its tokens eight times
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


@lru_cache(maxsize=4096)
def plotly_label(text: str, limit: int = LONGEST) -> str:
    """A token's text for Plotly's ticks, titles and hover texts, which are a kind of HTML.

    Tags and entities are escaped. A word joiner after "#" keeps Streamlit from reading "#000001" as
    a colour of its theme.
    """
    return plotly_words(token_label(text, limit))


def plotly_words(text: str) -> str:
    """Our own words for the same places: escaped, with their spaces."""
    return html.escape(text, quote=False).replace("#", "#" + WORD_JOINER)


@lru_cache(maxsize=4096)
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


def isolated(text: str) -> str:
    """The text with each run of right-to-left letters isolated, as by HTML's <bdi>: else the numbers and the
    arrow beside a token would change places with it. Source: Unicode Standard Annex 9, section 2.4."""
    return text if text.isascii() else _RUN.sub(rf"{_ISOLATE}\g<0>{_END}", text)


def visible(text: str) -> str:
    """The text with control, bidi, zero-width and unpaired characters spelled out, as ‹U+202E›.

    Spaces stay. Of more than `MARKS` accents on one letter the rest are counted: ‹+96 accents›.
    """
    if text.isprintable() and _NO_MARKS.fullmatch(text):
        return text
    shown, before, marks = [], "", 0
    for character in text:
        is_mark = unicodedata.category(character)[0] == "M" and not _hides(character, before)
        if not is_mark and marks > MARKS:
            shown.append(f"‹+{marks - MARKS} accents›")
        marks = marks + 1 if is_mark else 0
        if marks <= MARKS:
            shown.append(_spelled(character) if _hides(character, before) else character)
        before = character
    if marks > MARKS:
        shown.append(f"‹+{marks - MARKS} accents›")
    return "".join(shown)


def _hides(character: str, before: str) -> bool:
    if character in _EMOJI_STYLE and before and unicodedata.category(before) == "So":
        return False
    return not character.isprintable() or character in _IGNORABLE


def _spelled(character: str) -> str:
    if character in _NAMED:
        return _NAMED[character]
    if ord(character) < 32:
        return chr(0x2400 + ord(character))
    return f"‹U+{ord(character):04X}›"


def word_numbers(tokens: Sequence[str]) -> list[int]:
    """The number of each token's word; tokens of one word follow each other.

    Word pieces say that they go on with a word. Tokens that hold their own spaces go on with it where letters
    meet letters, or a space of its own. All others are words themselves: nothing tells how they stood in the
    text.
    """
    spaced = any(token[:1].isspace() for token in tokens)
    numbers: list[int] = []
    for at, token in enumerate(tokens):
        before = tokens[at - 1] if at else ""
        letters = spaced and (before[-1:].isalnum() or before == " ") and token[:1].isalnum()
        piece = len(token) > len(_PIECE) and token.startswith(_PIECE) and bool(before)
        goes_on = letters or piece
        numbers.append(numbers[-1] + (not goes_on) if numbers else 0)
    return numbers
