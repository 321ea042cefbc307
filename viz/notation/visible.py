"""Text in which nothing is hidden: invisible characters are spelled out. And text of right-to-left letters
that stays in its place."""

import re
import unicodedata

WORD_JOINER = "\u2060"  # has no width: splits signs that would mean something side by side
MARKS = 4  # accents on one letter: no script uses more, and a higher stack covers its neighbours
_NAMED = {"\n": "⏎", "\r": "␍", "\t": "⇥", "\x7f": "␡"}
_IGNORABLE = (
    frozenset(  # what Unicode lets a program ignore and Python calls printable, and a blank
        "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
    ).union(map(chr, range(0xFE00, 0xFE10)), map(chr, range(0xE0100, 0xE01F0)))
)
_EMOJI_STYLE = "\ufe0e\ufe0f"  # part of how a symbol is drawn


_ISOLATE, _END = "\u2068", "\u2069"
_RIGHT_TO_LEFT = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
_RUN = re.compile(f"[{_RIGHT_TO_LEFT}]+(?:[ ␣]+[{_RIGHT_TO_LEFT}]+)*")


def isolated(text: str) -> str:
    """The text with each run of right-to-left letters isolated, as by HTML's <bdi>: else the numbers and the
    arrow beside a token would change places with it. Source: Unicode Standard Annex 9, section 2.4."""
    return text if text.isascii() else _RUN.sub(rf"{_ISOLATE}\g<0>{_END}", text)


def visible(text: str) -> str:
    """The text with control, bidi, zero-width and unpaired characters spelled out, as ‹U+202E›.

    Spaces stay. Of more than `MARKS` accents on one letter the rest are counted: ‹+96 accents›.
    """
    if text.isascii() and text.isprintable():
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
