"""Which tokens make up a word together."""

from collections.abc import Sequence

_PIECE = "##"  # before a word piece that goes on with the word


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
