"""The books as token ids: a compact vocabulary, a part for training and a part held out."""

import lzma
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from model.run.tokenizers import GPT2Subset, gpt2
from model.training.recipe import Ids, Random
from tools.training import micro_stories

BOOKS = Path(__file__).with_name("books")
SHARES = {"bible": 0.40, "austen": 0.45, "shakespeare": 0.15}  # of the rows of book text
VOCABULARY = 8192
_PARTS = 50  # each collection is cut into so many; one in 25 is held out
_HELD_OUT = (12, 37)
_COMMON = 6000  # GPT-2's ids rise as its tokens get rarer: words below this are everyday words
_TYPED = (
    " quick jumps lazy kills lion tiger cricket attention computer computers language model models "
    "learning network machine transformer France Paris London England English French student "
    "students sentence words token tokens music football"
)  # words that people like to type, beside those of the stories


@dataclass(frozen=True)
class Collection:
    """The token ids of one collection of books, and where its paragraphs begin."""

    learned: NDArray[np.uint16]
    held_out: NDArray[np.uint16]
    beginnings: NDArray[np.int64]  # in `learned`


@dataclass(frozen=True)
class TokenCorpus:
    """Every collection under one tokenizer."""

    tokenizer: GPT2Subset
    collections: dict[str, Collection]

    def row(self, random: Random, length: int) -> Ids:
        """(length,) ids of running text; half of the rows begin at a paragraph."""
        chosen = random.choice(list(SHARES), p=list(SHARES.values()))
        collection = self.collections[str(chosen)]
        last = len(collection.learned) - length
        begin = int(random.integers(last))
        if random.random() < 0.5:
            begin = min(int(random.choice(collection.beginnings)), last)
        return collection.learned[begin : begin + length].astype(np.int64)

    def held_out_rows(self, random: Random, length: int, *, count: int) -> Ids:
        """(collections * count, length) rows of held-out text."""
        rows = []
        for collection in self.collections.values():
            begins = random.integers(len(collection.held_out) - length, size=count)
            rows += [collection.held_out[begin : begin + length] for begin in begins]
        return np.stack(rows).astype(np.int64)

    def learned(self) -> Ids:
        """All ids for training, one collection after the other. The baselines count them."""
        return np.concatenate([each.learned for each in self.collections.values()]).astype(np.int64)


def load() -> TokenCorpus:
    """The corpus of the books that house-gpt learns from."""
    return from_texts(texts())


def texts() -> dict[str, str]:
    """The plain text of each collection of books."""
    files = {name: BOOKS / f"{name}.txt.xz" for name in SHARES}
    return {name: lzma.open(file, "rt").read() for name, file in files.items()}


def from_texts(texts: dict[str, str]) -> TokenCorpus:
    """The corpus from the plain text of each collection."""
    parts = {name: split(text) for name, text in texts.items()}
    tokenizer = GPT2Subset(kept_ids({name: learned for name, (learned, _) in parts.items()}))
    newline = tokenizer.encode("\n")[0]
    collections = {}
    for name, both in parts.items():
        learned, held_out = (np.array(tokenizer.encode(text), dtype=np.uint16) for text in both)
        beginnings = np.flatnonzero(learned[:-1] == newline) + 1
        collections[name] = Collection(learned, held_out, beginnings)
    return TokenCorpus(tokenizer, collections)


def split(text: str) -> tuple[str, str]:
    """The text for training and the text held out, in whole paragraphs."""
    lines = text.splitlines()
    cuts = [round(part * len(lines) / _PARTS) for part in range(_PARTS + 1)]
    parts = ["\n".join(lines[start:stop]) for start, stop in pairwise(cuts)]
    learned = [part for number, part in enumerate(parts) if number not in _HELD_OUT]
    return "\n".join(learned), "\n".join(parts[number] for number in _HELD_OUT)


def kept_ids(learned: dict[str, str]) -> list[int]:
    """GPT-2 ids of the vocabulary: everyday words first, then the books' most frequent tokens.

    As many as make, with the 256 bytes, VOCABULARY tokens.
    """
    counts = np.zeros(gpt2().n_vocab)
    for name, text in learned.items():
        ids = gpt2().encode_ordinary(text)
        counts += np.bincount(ids, minlength=len(counts)) * (SHARES[name] / len(ids))
    everyday = _story_tokens() + _everyday_tokens()
    wanted = dict.fromkeys([*everyday, *np.argsort(-counts, kind="stable").tolist()])
    return [full for full in wanted if len(gpt2().decode_single_token_bytes(full)) > 1][
        : VOCABULARY - 256
    ]


def _story_tokens() -> list[int]:
    spoken = (*micro_stories.vocabulary(), *_TYPED.split())
    words = [text for word in spoken for text in (f" {word}", word)]
    return [ids[0] for ids in map(gpt2().encode, words) if len(ids) == 1]


def _everyday_tokens() -> list[int]:
    """Whole words in small letters that GPT-2 learned early."""
    texts = {full: gpt2().decode_single_token_bytes(full) for full in range(_COMMON)}
    return [
        full
        for full, text in texts.items()
        if text[:1] == b" " and len(text) > 4 and text[1:].isalpha() and text[1:].islower()
    ]
