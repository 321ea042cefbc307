"""Short sentences, on which a profile is held against a plain loop: some with structure, some of a book."""

import lzma
import re
from pathlib import Path

STRUCTURED = (
    "The cat sat on the mat, and the cat slept.",
    "Tom Hill saw a red ball. Anna gave the ball to Tom.",
    "In the beginning was the word; and in the end, the silence.",
    "It was a dark night, it was a dark road, and she was alone.",
    "She said: he will not come. He said: she will not come.",
    "Mary had a little lamb, little lamb, little lamb.",
    "The keys to the cabinet are on the table beside the door.",
    "To be, or not to be, that is the question.",
    "One, two, three, four, one, two, three, four.",
    "A rose is a rose is a rose is a rose.",
    "Every number on the page is checked, every one of them.",
    "Nothing will come of nothing: speak again.",
)
BOOK = lzma.decompress(Path("model/training/books/austen.txt.xz").read_bytes()).decode()
WRITTEN = re.findall(r"(?<=\. )[A-Z][a-z][^.!?\"_]{15,60}\.(?= )", " ".join(BOOK.split()))
SENTENCES = (*STRUCTURED, *WRITTEN[:: len(WRITTEN) // 192][:192])
WINDOW = 32  # tokens: each sentence fits
