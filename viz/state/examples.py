"""Sentences to start from, each with the head to open and what to look for.

Whatever an example says is computed on its model in `tests/viz/state/test_examples.py`: the largest cell of
the row, the line beside the diagonal row by row, the column, and what the model writes next.
"""

from dataclasses import dataclass

from model.nn.intervention import Intervention
from model.nn.places import Head
from viz.state.view import View


@dataclass(frozen=True)
class SentenceExample:
    """A view worth opening, and what is to be seen there."""

    title: str
    view: View
    look_for: str


def view_of(
    model: str,
    text: str,
    head: Head,
    cell: tuple[int, int],
    show: str = "",
    intervention: Intervention = Intervention(),
) -> View:
    """The view of one head's cell. cell: (query, key), the largest of its row."""
    (place, number), (query, key) = head, cell
    return View(
        text, model, place, number, query=query, key=key, show=show, intervention=intervention
    )


def example_claim(view: View) -> str | None:
    """What is to be seen in a view, where its head is that of an example."""
    shown = _head_of(view)
    return next((one.look_for for one in EXAMPLES if _head_of(one.view) == shown), None)


def _head_of(view: View) -> tuple[str, str, str, int]:
    return view.text, view.model, view.place, view.head


EXAMPLES: tuple[SentenceExample, ...] = (
    SentenceExample(
        "A name said again",
        view_of(
            "house-gpt",
            "Tom Hill saw a red ball. Anna gave the ball to Tom",
            ("decoder.1.self", 7),
            (12, 1),
        ),
        "The last row: the second “Tom” looks at “Hill”, the word that followed the first one. "
        "The model goes on with “Hill”.",
    ),
    SentenceExample(
        "The word before",
        view_of(
            "house-gpt",
            "Frank Churchill met Jane. They spoke of Frank",
            ("decoder.0.self", 2),
            (8, 7),
        ),
        "The line just below the diagonal: each token after the first looks at the one before it. The "
        "heads of layer 1 lean on it: go there and see “Frank” look at “Churchill”.",
    ),
    SentenceExample(
        "A list of words said again",
        view_of(
            "house-gpt",
            "river stone garden river stone garden river stone",
            ("decoder.1.self", 2),
            (7, 5),
        ),
        "The slanted line from the second “stone” on: each word looks at what followed it the time "
        "before. The second “river” looks at itself: the first one, without a space before it, is "
        "another token. The model goes on with “garden”.",
    ),
    SentenceExample(
        "Only itself",
        view_of(
            "house-gpt",
            "It was a dark night, and the old man sat by the fire",
            ("decoder.0.self", 1),
            (4, 4),
        ),
        "The diagonal: each token looks at itself and hardly at others. Such a head mixes next to "
        "nothing; it writes something about the word it stands on.",
    ),
    SentenceExample(
        "An induction head",
        view_of(
            "stories", "cat dog mat hat cup cat dog mat hat cup cat", ("decoder.1.self", 2), (10, 6)
        ),
        "The slanted line from the second “dog” on: each word looks at what followed it the time "
        "before. This is an induction head. The second “cat” looks at “mat”: the first one, without a "
        "space before it, is another token.",
    ),
    SentenceExample(
        "What an induction head leans on",
        view_of("stories", "Anna King met Sam Gray near the river", ("decoder.0.self", 1), (4, 3)),
        "The line just below the diagonal: each token after the first looks at the one before it.",
    ),
    SentenceExample(
        "A family name, in a smaller GPT",
        view_of("stories", "Sam Gray met Anna King. Sam", ("decoder.1.self", 1), (6, 1)),
        "The last row: the second “Sam” looks at “Gray”, and “Gray” comes next.",
    ),
    SentenceExample(
        "Rows of letters",
        view_of("induction", "q f m b t x k q f m b t x k q f", ("decoder.1.self", 2), (15, 9)),
        "The slanted line in the lower half: each letter that comes back looks at what followed it "
        "before, and after the last one the model goes on with that. “q” and “f” come a third time: "
        "their last rows look at two places.",
    ),
    SentenceExample(
        "Words that change places",
        view_of("translate-en-fr", "the black cat sleeps", ("decoder.1.cross", 0), (1, 2)),
        "The crossing: “le” looks at “cat” to write “chat”, then “chat” looks back at “black” to "
        "write “noir”.",
    ),
    SentenceExample(
        "The gender of a noun to come",
        view_of(
            "translate-en-fr", "the old man eats a green apple", ("decoder.1.cross", 3), (4, 6)
        ),
        "The row of “mange”: the next word is “un” or “une”, and that depends on the apple. So this "
        "head looks past “a green” at “apple”. Head 0 of the same layer looks at “a” here.",
    ),
    SentenceExample(
        "What “it” stands for",
        view_of(
            "minilm",
            "The animal didn't cross the street because it was too tired",
            ("encoder.3.self", 1),
            (10, 2),
        ),
        "The row of “it”: most of its weight lies on “animal”.",
    ),
    SentenceExample(
        "What “them” stands for",
        view_of(
            "minilm",
            "Anna lost her keys and the old man found them in the garden",
            ("encoder.3.self", 1),
            (10, 4),
        ),
        "The row of “them”: more than nine tenths of its weight lie on “keys”. The same head finds "
        "“animal” for “it” in the other example.",
    ),
    SentenceExample(
        "One word, two meanings",
        view_of(
            "minilm",
            "The bank of the river was steep; the bank in town was closed",
            ("encoder.2.self", 9),
            (10, 2),
        ),
        "The two rows of “bank” look at each other, and so do those of “was”. The rows of words that "
        "stand alone rest on “[CLS]”.",
    ),
    SentenceExample(
        "Nothing to look for",
        view_of("minilm", "The rain fell softly on the old town", ("encoder.4.self", 5), (8, 0)),
        "The first column: every row rests on “[CLS]”. Weights must sum to one, so a head that finds "
        "nothing puts them where they do little: the value of “[CLS]” is the shortest by far.",
    ),
    SentenceExample(
        "The word before, in an encoder",
        view_of(
            "minilm",
            "She opened the door and walked into the cold night",
            ("encoder.0.self", 2),
            (5, 4),
        ),
        "The line just below the diagonal: each token after the first looks at the one before it, "
        "here in a model that could look ahead.",
    ),
    SentenceExample(
        "The word after",
        view_of("minilm", "the cat saw the cat", ("encoder.1.self", 8), (2, 3)),
        "The line just above the diagonal: each word looks at the next one. The last “cat” has none "
        "after it: its weight lies on “[CLS]”, on “[SEP]” and on itself.",
    ),
)
FIRST = EXAMPLES[0].view  # what a visitor sees who comes without a link
