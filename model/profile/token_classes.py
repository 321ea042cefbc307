"""Classes of tokens: what a token is, told from its letters."""

from collections.abc import Sequence
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from model.trace.records import Token

CLASSES = (
    "special",
    "line break",
    "space",
    "punctuation",
    "number",
    "start of a word",
    "rest of a word",
)
DELIMITERS = ("special", "line break")
SPACE = "▁"  # how SentencePiece writes a space


def token_classes(tokens: Sequence[Token]) -> NDArray[np.int64]:
    """(token,): the index of each token's class in CLASSES."""
    named = [_class_of(token, tokens[at - 1] if at else None) for at, token in enumerate(tokens)]
    return np.array([CLASSES.index(name) for name in named], np.int64)


def _class_of(token: Token, before: Token | None) -> str:
    letters = token.text.replace(SPACE, " ").strip()
    if token.special:
        return "special"
    if not letters:
        return "line break" if "\n" in token.text else "space"
    if all(_is_mark(letter) for letter in letters):
        return "punctuation"
    if all(letter.isnumeric() for letter in letters):
        return "number"
    return "start of a word" if _starts_a_word(token, before) else "rest of a word"


def _is_mark(letter: str) -> bool:
    return category(letter)[0] in "PS"


def _starts_a_word(token: Token, before: Token | None) -> bool:
    """Whether no letter of a word stands right before it: by where both stand in the text, or by the
    space that the token begins with."""
    if before is None or before.special or token.text[:1].isspace():
        return True
    if token.span is not None and before.span is not None and token.span[0] > before.span[1]:
        return True
    last = before.text[-1:]
    return not token.text.startswith("##") and (last.isspace() or _is_mark(last or " "))
