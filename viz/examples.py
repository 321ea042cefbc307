"""Sentences to start from, each with the head to open and what to look for.

Whatever an example says is computed on its model in `tests/viz/test_examples.py`: the largest cell of
the row, the line beside the diagonal, the column, and what the model writes next.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """A sentence, where to look in which model, and what is to be seen there."""

    title: str
    text: str
    model: str
    place: str
    head: int
    query: int
    key: int  # the largest cell of the query's row
    look_for: str
    line: int | None = None  # key - query along a line that is claimed: -1 the one before
    column: bool = False  # whether every row is claimed to rest on the chosen key
    goes_on: str | None = None  # the next token that is claimed


EXAMPLES: tuple[Example, ...] = (
    Example(
        "A name said again",
        "Tom Hill saw a red ball. Anna gave the ball to Tom",
        "house-gpt",
        "decoder.1.self",
        7,
        12,
        1,
        "The last row: the second “Tom” looks at “Hill”, the word that followed the first one. "
        "The model goes on with “Hill”.",
        goes_on=" Hill",
    ),
    Example(
        "The word before",
        "Frank Churchill met Jane. They spoke of Frank",
        "house-gpt",
        "decoder.0.self",
        2,
        8,
        7,
        "The line just below the diagonal: this head looks at the one before it, at every token. The "
        "heads of layer 1 lean on it: go there and see “Frank” look at “Churchill”.",
        line=-1,
    ),
    Example(
        "A list of words said again",
        "river stone garden river stone garden river stone",
        "house-gpt",
        "decoder.1.self",
        2,
        7,
        5,
        "The slanted line: each word looks at what followed it the time before. No book holds this "
        "list, yet the model goes on with “garden”.",
        line=-2,
        goes_on=" garden",
    ),
    Example(
        "Only itself",
        "It was a dark night, and the old man sat by the fire",
        "house-gpt",
        "decoder.0.self",
        1,
        4,
        4,
        "The diagonal: each token looks at itself alone. Such a head mixes nothing; it writes "
        "something about the word it stands on.",
        line=0,
    ),
    Example(
        "An induction head",
        "cat dog mat hat cup cat dog mat hat cup cat",
        "stories",
        "decoder.1.self",
        2,
        10,
        6,
        "The slanted line in the lower half: each word looks at what followed it the time before. "
        "This is an induction head.",
        line=-4,
    ),
    Example(
        "What an induction head leans on",
        "Anna King met Sam Gray near the river",
        "stories",
        "decoder.0.self",
        1,
        4,
        3,
        "The line just below the diagonal: each token looks at the one before it.",
        line=-1,
    ),
    Example(
        "A family name, in the smallest GPT",
        "Sam Gray met Anna King. Sam",
        "stories",
        "decoder.1.self",
        1,
        6,
        1,
        "The last row: the second “Sam” looks at “Gray”, and “Gray” comes next.",
        goes_on=" Gray",
    ),
    Example(
        "Rows of letters",
        "q f m b t x k q f m b t x k q f",
        "induction",
        "decoder.1.self",
        2,
        15,
        9,
        "The slanted line in the lower half: each letter looks at what followed it the time before, "
        "and the model goes on with that.",
        line=-6,
        goes_on="m",
    ),
    Example(
        "Words that change places",
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
        "The gender of a noun to come",
        "the old man eats a green apple",
        "translate-en-fr",
        "decoder.1.cross",
        3,
        4,
        6,
        "The row of “mange”: the next word is “un” or “une”, and that depends on the apple. So this "
        "head looks past “a green” at “apple”. Head 0 of the same layer looks at “a” here.",
    ),
    Example(
        "What “it” stands for",
        "The animal didn't cross the street because it was too tired",
        "minilm",
        "encoder.3.self",
        1,
        10,
        2,
        "The row of “it”: most of its weight lies on “animal”.",
    ),
    Example(
        "What “them” stands for",
        "Anna lost her keys and the old man found them in the garden",
        "minilm",
        "encoder.3.self",
        1,
        10,
        4,
        "The row of “them”: nearly all of its weight lies on “keys”. It is the head that finds what "
        "“it” stands for, too.",
    ),
    Example(
        "One word, two meanings",
        "The bank of the river was steep; the bank in town was closed",
        "minilm",
        "encoder.2.self",
        9,
        10,
        2,
        "The two rows of “bank” look at each other, and so do those of “was”: this head finds the "
        "same word elsewhere.",
    ),
    Example(
        "Nothing to look for",
        "The rain fell softly on the old town",
        "minilm",
        "encoder.4.self",
        5,
        8,
        0,
        "The first column: every row rests on “[CLS]”. Weights must sum to one, so a head that finds "
        "nothing puts them where they do little.",
        column=True,
    ),
    Example(
        "The word before, in an encoder",
        "She opened the door and walked into the cold night",
        "minilm",
        "encoder.0.self",
        2,
        5,
        4,
        "The line just below the diagonal: each token looks at the one before it, here in a model "
        "that could look ahead.",
        line=-1,
    ),
    Example(
        "The word after",
        "the cat saw the cat",
        "minilm",
        "encoder.1.self",
        8,
        2,
        3,
        "The line just above the diagonal: each token looks at the next one.",
        line=1,
    ),
)
FIRST = EXAMPLES[0]
