"""Random words and punctuation marks from a model's own vocabulary, and what its tokenizer puts around a
text."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from model.profile.token_classes import SPACE
from model.trace.records import Token

if TYPE_CHECKING:
    from model.run.model import Model

LOOKED_AT = 1024  # tokens of a vocabulary, drawn by chance
ENOUGH = 64  # words to draw lines from
_SEED = 20220208


@dataclass(frozen=True)
class Words:
    """What lines are made of."""

    words: tuple[Token, ...]  # different ones, in an order by chance
    before: tuple[Token, ...]  # special tokens at the beginning of each text
    after: tuple[Token, ...]  # and at its end


def words_of(model: "Model") -> Words:
    """Whole words after a space where the vocabulary has enough of them, else words, else any tokens: the
    rarer kinds have hardly been trained."""
    size = min(model.tokenizer.size, model.config.d_vocab)
    drawn = np.random.default_rng(_SEED).permutation(size)[:LOOKED_AT]
    ends = {model.tokenizer.start, model.tokenizer.end}
    every = [one for one in model.tokenizer.named(drawn.tolist()) if one.id not in ends]
    plain = [one for one in every if not one.special]
    named = [one for one in plain if _letters(one).isalpha()]
    spaced = [one for one in named if one.text[:1] in (" ", SPACE)]
    kinds = (spaced, named, plain)
    chosen = next((kind for kind in kinds if len(kind) >= ENOUGH), max(kinds, key=len))
    return Words(tuple(chosen), *_frame(model, chosen))


def _frame(model: "Model", words: list[Token]) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
    """The special tokens before and after a text that this tokenizer reads."""
    for word in words:
        try:
            tokens = model.tokens(model.tokenizer.decode([word.id]))
        except ValueError:
            continue
        typed = [place for place, token in enumerate(tokens) if not token.special]
        if typed:
            return tokens[: typed[0]], tokens[typed[-1] + 1 :]
    return (), ()


def mark(model: "Model", letters: str) -> Token | None:
    """A punctuation mark as one token, as it stands in a text; None where this tokenizer has none."""
    for text in (f"one {letters} two", letters):
        try:
            found = [one for one in model.tokens(text) if _letters(one) == letters]
        except ValueError:
            continue
        if found:
            return found[0]
    return None


def _letters(token: Token) -> str:
    return token.text.replace(SPACE, " ").strip()


def places_of(tokens: tuple[Token, ...], word: str) -> list[int]:
    """Where a word stands as one whole token."""
    same: Callable[[Token], bool] = lambda one: _letters(one).lower() == word.lower()  # noqa: E731
    return [place for place, token in enumerate(tokens) if not token.special and same(token)]
