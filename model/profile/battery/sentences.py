"""Prompts of sentences: a verb and its subject, and the name that must come next.

A sentence counts where the tokenizer has each word that is asked for as one whole token.
"""

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from model.profile.battery.prompts import (
    FEWEST,
    PROMPTS,
    WANTED,
    Cells,
    Line,
    Prompt,
    Prompts,
    at,
    begun,
    from_other_rows,
)
from model.profile.battery.words import places_of
from model.trace.records import Token

if TYPE_CHECKING:
    from model.run.model import Model

TRIED = 120  # sentences, until there are enough
NOUNS = tuple(
    (one, f"{one}s")
    for one in (
        *("key", "boy", "tree", "king", "book", "girl", "dog", "car", "house", "friend"),
        *("bird", "door", "flower", "cat", "ship"),
    )
)
# Neither the distance of verb and subject nor the place of the subject may give the answer away.
AGREEING = (
    "The {subject} near the {other} {verb} old.",
    "We saw that the {subject} behind the little {other} {verb} old.",
    "In the end the {subject} on the side of the old {other} {verb} here.",
)
NAMES = (
    *(("Mary", "John"), ("Tom", "Anna"), ("Sarah", "James"), ("Alice", "Peter")),
    *(("Jane", "George"), ("Paul", "Kate"), ("Rose", "David"), ("Henry", "Laura")),
)
MOVING = (
    "When {one} and {two} went to the house, {giver} gave a book to",
    "Then {one} and {two} were in the garden, and {giver} gave the ball to",
    "One day {one} and {two} came home. There {giver} gave the old key to",
)


class _Sentence(NamedTuple):
    """words: those that must be whole tokens, the last of them the query's."""

    text: str
    words: tuple[str, ...]


def sentence_prompts(model: "Model") -> Prompts:
    """Those of agreement and of names."""
    made = _made(model, "agreement", _agreeing())
    return made + (
        _made(model, "names", _moving()) if model.config.shape == "decoder" else Prompts()
    )


def _agreeing() -> Iterator[_Sentence]:
    """Subject and verb of one number, a noun of the other between them (Linzen et al. 2016)."""
    for number in range(TRIED):
        plural, tense = number % 2, number // 2 % 2
        subject = NOUNS[number % len(NOUNS)][plural]
        other = NOUNS[(2 * number + 5) % len(NOUNS)][1 - plural]
        verb = (("is", "are"), ("was", "were"))[tense][plural]
        text = AGREEING[number % len(AGREEING)]
        if subject.rstrip("s") != other.rstrip("s"):
            filled = text.format(subject=subject, other=other, verb=verb)
            yield _Sentence(filled, (subject, other, verb))


def _moving() -> Iterator[_Sentence]:
    """Two names, and one of them again. Each sentence also with the names exchanged, so that it does not
    tell which of them comes first (Wang et al. 2022)."""
    for number in range(TRIED):
        one, two = NAMES[number // 2 % len(NAMES)]
        giver, other = ((two, one), (one, two))[number % 2]
        text = MOVING[number // 2 % len(MOVING)].format(one=one, two=two, giver=giver)
        yield _Sentence(text, (other, giver, "to"))


def _made(model: "Model", label: str, sentences: Iterator[_Sentence]) -> Prompts:
    stacks, reason = model.stacks(), ""
    lines = list(islice(_readable(model, label, sentences), PROMPTS))
    if len(lines) < FEWEST:
        reason = "Its tokenizer has too few of the words of these sentences as whole tokens."
        return Prompts((), {(stack, label): reason for stack in stacks})
    made = tuple(Prompt(line, begun(model, line.tokens)) for line in lines)
    reason = "Its decoder writes another text than the one that is made up here."
    return Prompts(made, {(stack, label): reason for stack in stacks[1:]})


def _readable(model: "Model", label: str, sentences: Iterator[_Sentence]) -> Iterator[Line]:
    """The sentences that this model reads, all words of which it knows."""
    for sentence in sentences:
        try:
            if model.new_words(sentence.text):
                continue
            tokens = model.tokens(sentence.text)
        except ValueError:
            continue
        if len(tokens) <= model.config.n_ctx and (line := _line(tokens, label, sentence.words)):
            yield line


def _line(tokens: tuple[Token, ...], label: str, words: tuple[str, ...]) -> Line | None:
    """wanted: the query's word on the first of the words. Controls: on the second; and the first one's keys
    from all other rows."""
    wanted, other, queries = (places_of(tokens, word) for word in words)
    if len(wanted) != 1 or not other or not queries:
        return None
    query, length = queries[-1], len(tokens)
    mask = at(length, [(query, wanted[0])])
    return Line(
        tokens,
        (
            Cells(label, WANTED, mask),
            Cells(label, "the other word", at(length, [(query, key) for key in other])),
            Cells(label, "other rows", from_other_rows(mask)),
        ),
    )
