"""A corpus as windows: texts of at most so many tokens, in order, read a piece at a time."""

import hashlib
import re
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING

from model.system.files import PIECE as FILE_PIECE
from model.system.files import opened

if TYPE_CHECKING:
    from model.run.model import Model

MOST_BYTES = 2**50  # of a corpus, which is read a piece at a time
PIECE = 50_000  # characters that are read at once
_TO_THE_LAST_SPACE = re.compile(r"(?s).*\s")
_NO_SPACE = re.compile(r"\S")
_LINE = re.compile(r"[^\n]*\n?")
CHARACTERS = 8  # a window of n tokens is cut from 8 n characters: tokens are shorter on average


@dataclass(frozen=True)
class Corpus:
    """A text file in UTF-8. by_line: each line is a text of its own; otherwise the file is one text.

    A window is a text, which the model reads by itself: whoever opens an example sees the same numbers.
    """

    path: Path
    by_line: bool = False

    def hash(self) -> str:
        """SHA-256 of the file's bytes. Raises ValueError as `opened`."""
        with opened(self.path, MOST_BYTES) as (file, _):
            digest = hashlib.sha256()
            while piece := file.read(FILE_PIECE):
                digest.update(piece)
            return digest.hexdigest()

    def windows(self, model: "Model", tokens: int) -> Iterator[str]:
        """The texts of the windows. Raises ValueError for a file that is not text."""
        for piece in self._pieces():
            yield from cut(model, piece, tokens)

    def _pieces(self) -> Iterator[str]:
        """The lines, or parts of the text that end where a line does. A longer line is parted at a space, or
        anywhere in PIECE characters without one: a piece has at most 2 · PIECE."""
        try:
            with opened(self.path, MOST_BYTES) as (binary, _):
                file, kept = TextIOWrapper(binary, "utf-8-sig"), ""
                while read := file.readline(PIECE):
                    kept += read
                    line_ends = read.endswith("\n")
                    if len(kept) >= PIECE or (self.by_line and line_ends):
                        end = len(kept) if line_ends else _last_space(kept)
                        yield kept[:end]
                        kept = kept[end:]
                yield kept
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.path.name} is not text in UTF-8: {error.reason}.") from None


def _last_space(text: str) -> int:
    """Where the text after its last white space begins; its end without one."""
    found = _TO_THE_LAST_SPACE.match(text)
    return found.end() if found else len(text)


def cut(model: "Model", text: str, most: int) -> Iterator[str]:
    """The parts of a text that make at most so many tokens each, special ones included. A line that the
    tokenizer refuses is a part of its own, so that only this part cannot be read."""
    at = 0
    while found := _NO_SPACE.search(text, at):
        at = found.start()
        part = _part(model, text[at : at + most * CHARACTERS].rstrip(), most)
        yield part
        at += len(part)


def _part(model: "Model", text: str, most: int) -> str:
    """The first part of a text: up to a line that the tokenizer refuses, or that line."""
    with suppress(ValueError):
        return _beginning(model, text, most)
    ends = [line.end() for line in _LINE.finditer(text)]
    if readable := bisect_left(ends, True, key=lambda end: _is_refused(model, text[:end])):
        with suppress(ValueError):
            return _beginning(model, text[: ends[readable - 1]].rstrip(), most)
    return text[: ends[0]].rstrip()


def _is_refused(model: "Model", text: str) -> bool:
    try:
        model.tokenizer.tokens(text)
    except ValueError:
        return True
    return False


def _beginning(model: "Model", text: str, most: int) -> str:
    """The longest beginning that makes at most so many tokens. A beginning cut from a text can make more
    tokens than it had there, so it is counted again."""
    for count in range(most, 0, -1):
        part = model.tokenizer.beginning(text, count).rstrip()
        if part and len(model.tokenizer.tokens(part)) <= most:
            return part
    return text[:1]
