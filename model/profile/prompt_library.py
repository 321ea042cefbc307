"""The texts that models are asked on, and the words, marks and sentences of them that one model reads: the
battery of labels and the claims of papers make their prompts of these.
"""

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from model.profile.token_classes import SPACE
from model.trace.records import Token

if TYPE_CHECKING:
    from model.run.model import Model

WRITTEN: dict[str, Any] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
NOUNS = tuple((noun, f"{noun}s") for noun in WRITTEN["nouns"].split())
NAMES = tuple((one, two) for one, two in map(str.split, WRITTEN["names"]))
LOOKED_AT = 1024  # tokens of a vocabulary, drawn by chance
ENOUGH = 64  # words to draw lines from
_SEED = 20220208


@dataclass(frozen=True)
class PromptWords:
    """What lines are made of."""

    words: tuple[Token, ...]  # different ones, in an order by chance
    before: tuple[Token, ...]  # special tokens at the beginning of each text
    after: tuple[Token, ...]  # and at its end


def words_of(model: "Model") -> PromptWords:
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
    return PromptWords(tuple(chosen), *_frame(model, chosen))


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


def drawn_words(words: PromptWords, number: int, count: int) -> tuple[Token, ...]:
    """So many words, different ones where there are enough; others for each number."""
    random, size = np.random.default_rng(number), len(words.words)
    return tuple(words.words[one] for one in random.choice(size, count, replace=count > size))


def known_tokens(model: "Model", text: str) -> tuple[Token, ...]:
    """The tokens of a text that this model reads, all words of which it knows; none of another."""
    try:
        tokens = () if model.new_words(text) else model.tokens(text)
    except ValueError:
        return ()
    return tokens if len(tokens) <= model.config.n_ctx else ()


class WrittenSentence(NamedTuple):
    """words: those that must be whole tokens, the last of them the query's. wrong: the same with a verb that
    does not agree; "": the second of the words is the wrong answer after the last."""

    text: str
    words: tuple[str, ...]
    wrong: str = ""


def agreeing_sentences(count: int, *, past: bool) -> Iterator[WrittenSentence]:
    """Subject and verb of one number, a noun of the other between them (Linzen et al. 2016). words: subject,
    other noun and verb. Fewer than `count`, since a noun is not set beside itself. past: also of the past."""
    frames = WRITTEN["agreeing"]
    for number in range(count):
        plural, tense = number % 2, past * number // 2 % 2
        one, two = number % len(NOUNS), (2 * number + 5) % len(NOUNS)
        subject, other = NOUNS[one][plural], NOUNS[two][1 - plural]
        verbs = (("is", "are"), ("was", "were"))[tense]
        frame = frames[(number if past else number // 2) % len(frames)]
        if one != two:
            right, wrong = (
                frame.format(subject=subject, other=other, verb=verbs[at])
                for at in (plural, 1 - plural)
            )
            yield WrittenSentence(right, (subject, other, verbs[plural]), wrong)


def moving_sentences(count: int, *, third: bool = False) -> Iterator[WrittenSentence]:
    """Two names, and one of them again. Each sentence also with the names exchanged, so that it does not
    tell which of them comes first (Wang et al. 2022). words: who gets something, who gives it, and "to".
    third: a third person gives, in the place of the second word."""
    frames = WRITTEN["moving"]
    for number in range(count):
        half, which = divmod(number, 2)
        one, two = NAMES[half % len(NAMES)]
        giver, other = ((two, one), (one, two))[which]
        gives = NAMES[(half + 1) % len(NAMES)][which] if third else giver
        text = frames[half % len(frames)].format(one=one, two=two, giver=gives)
        yield WrittenSentence(text, (other, giver, "to"))
