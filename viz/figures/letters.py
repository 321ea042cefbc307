"""How wide the letters of a label are, without a browser: in letters of one width, rounded up."""

import unicodedata

from viz.notation.labels import drawn_letters

NARROW = range(
    0x0530
)  # Latin, Greek and Cyrillic letters: the face has them, or another one of its width
MARKS = range(0x2010, 0x2070)  # dashes, quotes and dots
PICTURES = range(0x2400, 0x2440)  # of blanks and ends of lines
FULL, WIDEST = (
    1.65,
    2.1,
)  # a letter of Chinese, Japanese or Korean; any other that another face draws
WITHOUT_WIDTH = {
    "Mn",
    "Me",
    "Cf",
}  # categories of what is drawn over the letter before it, or not at all


def letters_wide(drawn: str) -> float:
    """The width of what one sees when Plotly draws this, in letters of one width."""
    letters = drawn_letters(drawn)
    return len(letters) if letters.isascii() else sum(map(_wide, letters))


def _wide(letter: str) -> float:
    if unicodedata.category(letter) in WITHOUT_WIDTH:
        return 0.0
    if any(ord(letter) in letters for letters in (NARROW, MARKS, PICTURES)) or letter == "∅":
        return 1.0
    is_full = unicodedata.east_asian_width(letter) in "WF" and unicodedata.category(letter) == "Lo"
    return FULL if is_full else WIDEST
