"""Sentences to start from, each with the head to open and what to look for. Held by a test."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """A sentence, where to look in which model, and what is to be seen there."""

    text: str
    model: str
    place: str
    head: int
    query: int
    key: int
    look_for: str


EXAMPLES: tuple[Example, ...] = (
    Example(
        "The animal didn't cross the street because it was too tired",
        "minilm",
        "encoder.3.self",
        1,
        10,
        2,
        "The row of “it”: most of its weight lies on “animal”.",
    ),
    Example(
        "The cat sat on the mat",
        "minilm",
        "encoder.0.self",
        2,
        3,
        2,
        "The line just below the diagonal: each token looks at the one before it.",
    ),
    Example(
        "the cat saw the cat",
        "minilm",
        "encoder.1.self",
        8,
        2,
        3,
        "The line just above the diagonal: each token looks at the next one.",
    ),
)
FIRST = EXAMPLES[0]
