"""Sentences to start from, each with the head to open and what to look for.

Whatever an example says is computed on its model in `tests/viz/state/test_examples.py`: the largest cell of
the row, the line beside the diagonal row by row, the column, and what the model writes next.
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
    line_rows: tuple[int, int] = (0, -1)  # the first and the last row of that line
    exceptions: tuple[
        tuple[int, int], ...
    ] = ()  # (query, its largest key): rows that are said to differ
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
        "The line just below the diagonal: each token after the first looks at the one before it. The "
        "heads of layer 1 lean on it: go there and see “Frank” look at “Churchill”.",
        line=-1,
        line_rows=(1, 8),
    ),
    Example(
        "A list of words said again",
        "river stone garden river stone garden river stone",
        "house-gpt",
        "decoder.1.self",
        2,
        7,
        5,
        "The slanted line from the second “stone” on: each word looks at what followed it the time "
        "before. The second “river” looks at itself: the first one, without a space before it, is "
        "another token. The model goes on with “garden”.",
        line=-2,
        line_rows=(4, 7),
        exceptions=((3, 3),),
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
        "The diagonal: each token looks at itself and hardly at others. Such a head mixes next to "
        "nothing; it writes something about the word it stands on.",
        line=0,
        line_rows=(0, 13),
    ),
    Example(
        "An induction head",
        "cat dog mat hat cup cat dog mat hat cup cat",
        "stories",
        "decoder.1.self",
        2,
        10,
        6,
        "The slanted line from the second “dog” on: each word looks at what followed it the time "
        "before. This is an induction head. The second “cat” looks at “mat”: the first one, without a "
        "space before it, is another token.",
        line=-4,
        line_rows=(6, 10),
        exceptions=((5, 2),),
    ),
    Example(
        "What an induction head leans on",
        "Anna King met Sam Gray near the river",
        "stories",
        "decoder.0.self",
        1,
        4,
        3,
        "The line just below the diagonal: each token after the first looks at the one before it.",
        line=-1,
        line_rows=(1, 7),
    ),
    Example(
        "A family name, in a smaller GPT",
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
        "The slanted line in the lower half: each letter that comes back looks at what followed it "
        "before, and after the last one the model goes on with that. “q” and “f” come a third time: "
        "their last rows look at two places.",
        line=-6,
        line_rows=(7, 13),
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
        "The row of “them”: more than nine tenths of its weight lie on “keys”. The same head finds "
        "“animal” for “it” in the other example.",
    ),
    Example(
        "One word, two meanings",
        "The bank of the river was steep; the bank in town was closed",
        "minilm",
        "encoder.2.self",
        9,
        10,
        2,
        "The two rows of “bank” look at each other, and so do those of “was”. The rows of words that "
        "stand alone rest on “[CLS]”.",
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
        "nothing puts them where they do little: the value of “[CLS]” is the shortest by far.",
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
        "The line just below the diagonal: each token after the first looks at the one before it, "
        "here in a model that could look ahead.",
        line=-1,
        line_rows=(1, 11),
    ),
    Example(
        "The word after",
        "the cat saw the cat",
        "minilm",
        "encoder.1.self",
        8,
        2,
        3,
        "The line just above the diagonal: each word looks at the next one. The last “cat” has none "
        "after it: its weight lies on “[CLS]”, on “[SEP]” and on itself.",
        line=1,
        line_rows=(1, 4),
        exceptions=((5, 0),),
    ),
)
FIRST = EXAMPLES[0]
