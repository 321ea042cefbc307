"""Short sentences, on which a profile is held against a plain loop: some with structure, some of a book."""

import lzma
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from model import Trace, load_model
from model.analysis.heads.statistics import heads_of
from model.nn.places import Head

STRUCTURED = (
    "The cat sat on the mat, and the cat slept.",
    "Tom Hill saw a red ball. Anna gave the ball to Tom.",
    "In the beginning was the word; and in the end, the silence.",
    "It was a dark night, it was a dark road, and she was alone.",
    "She said: he will not come. He said: she will not come.",
    "Mary had a little lamb, little lamb, little lamb.",
    "The keys to the cabinet are on the table beside the door.",
    "To be, or not to be, that is the question.", "One, two, three, four, one, two, three, four.",
    "A rose is a rose is a rose is a rose.",
    "Every number on the page is checked, every one of them.",
    "Nothing will come of nothing: speak again.",
)  # fmt: skip
BOOK = lzma.decompress(Path("tools/training/books/austen.txt.xz").read_bytes()).decode()
WRITTEN = re.findall(r"(?<=\. )[A-Z][a-z][^.!?\"_]{15,60}\.(?= )", " ".join(BOOK.split()))
SENTENCES = (*STRUCTURED, *WRITTEN[:: len(WRITTEN) // 36][:36])
WINDOW = 32  # tokens: each sentence fits


@cache
def traces(name: str) -> list[Trace]:
    """Of a model over all sentences."""
    model = load_model(name)
    return [model.trace(sentence) for sentence in SENTENCES]


def rows(name: str) -> Iterator[tuple[int, Head]]:
    """The rows of a profile's table, and the head of each."""
    yield from enumerate(heads_of(traces(name)[0].attention))
