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
        "Tom Hill saw a red ball. Anna gave the ball to Tom",
        "house-gpt",
        "decoder.1.self",
        7,
        12,
        1,
        "The last row: the second “Tom” looks at “Hill”, the word that followed the first one. "
        "The model goes on with “Hill”.",
    ),
    Example(
        "Frank Churchill met Jane. They spoke of Frank",
        "house-gpt",
        "decoder.0.self",
        2,
        8,
        7,
        "The line just below the diagonal: this head looks at the one before it, at every token. The "
        "heads of layer 1 lean on it: go there and see “Frank” look at “Churchill”.",
    ),
    Example(
        "cat dog mat hat cup cat dog mat hat cup cat",
        "stories",
        "decoder.1.self",
        2,
        10,
        6,
        "The slanted line in the lower half: each word looks at what followed it the time before. "
        "This is an induction head.",
    ),
    Example(
        "Anna King met Sam Gray near the river",
        "stories",
        "decoder.0.self",
        1,
        4,
        3,
        "The line just below the diagonal: each token looks at the one before it.",
    ),
    Example(
        "q f m b t x k q f m b t x k q f",
        "induction",
        "decoder.1.self",
        2,
        15,
        9,
        "The slanted line in the lower half: each letter looks at what followed it the time before, "
        "and the model goes on with that.",
    ),
    Example(
        "the black cat sleeps",
        "translate-en-fr",
        "decoder.1.cross",
        0,
        1,
        2,
        "The crossing: “le” looks at “cat” to write “chat”, then “chat” looks back at “black” to "
        "write “noir”.",
    ),
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
