"""Texts of every nasty kind: for hypothesis, and for the fuzz run by the number of an input."""

import random
import unicodedata
from collections.abc import Callable

from hypothesis import strategies as st

from tests.hostile.attacks import ATTACKS, SHORT

ORDINARY = ("the", "cat", "saw", "a", "dog", "and", "Tom", "gave", "it", "to", "Anna", ".")
any_character = st.characters(exclude_categories=())  # lone surrogates and NUL too
any_words = st.lists(
    st.one_of(st.text(any_character, max_size=30), st.sampled_from(SHORT), st.just(" the cat ")),
    max_size=6,
).map("".join)


def _any(dice: random.Random) -> str:
    return "".join(chr(dice.randrange(0x110000)) for _ in range(dice.randint(0, 60)))


def _plane(dice: random.Random) -> str:
    start = dice.choice(
        [0, 0x80, 0x300, 0x590, 0x600, 0x900, 0x2000, 0x3040, 0xD800, 0xFE00, 0x1F300]
    )
    return "".join(chr(start + dice.randrange(256)) for _ in range(dice.randint(1, 60)))


def _attacks(dice: random.Random) -> str:
    words = dice.choices(SHORT, k=dice.randint(1, 8))
    return dice.choice(["", " ", " the cat "]).join(words)


def _nested(dice: random.Random) -> str:
    opening, closing = dice.choice(
        [("<b>", "</b>"), ("[", "](x)"), ("**", "**"), ("{", "}"), ("(", ")")]
    )
    deep = dice.randint(1, 200)
    return opening * deep + "the cat" + closing * deep


def _tower(dice: random.Random) -> str:
    marks = [chr(code) for code in range(0x300, 0x370) if unicodedata.combining(chr(code))]
    return "".join("a" + "".join(dice.choices(marks, k=dice.randint(0, 60))) for _ in range(5))


def _cut(dice: random.Random) -> str:
    word = dice.choice(ATTACKS[:-1])
    return word[dice.randrange(len(word)) :] + word[: dice.randrange(len(word))]


def _long(dice: random.Random) -> str:
    part = dice.choice([*SHORT, "W", "the cat ", "\u0301", "\u202e", "猫", "👩‍👩‍👧", " ", "\x00"])
    return (part * 100_000)[: dice.choice([1_000, 10_000, 100_000])]


def _ordinary(dice: random.Random) -> str:
    return " ".join(dice.choices(ORDINARY, k=dice.randint(1, 30)))


KINDS: dict[str, tuple[Callable[[random.Random], str], int]] = {  # how it is made, and its share
    "any characters": (_any, 18),
    "characters of one block": (_plane, 18),
    "attacks": (_attacks, 24),
    "nested": (_nested, 8),
    "towers of accents": (_tower, 8),
    "cut attacks": (_cut, 12),
    "long": (_long, 2),
    "ordinary": (_ordinary, 10),
}


def text_of(dice: random.Random) -> tuple[str, str]:
    """A kind, and a text of it."""
    kind = dice.choices(list(KINDS), [share for _, share in KINDS.values()])[0]
    return kind, KINDS[kind][0](dice)
