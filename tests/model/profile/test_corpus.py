"""A corpus is read in small pieces, wherever its lines end; nothing of it is lost."""

import os
from itertools import product
from pathlib import Path

import pytest

from model.profile.corpus import PIECE, Corpus
from model.profile.token_classes import CLASSES, token_classes
from model.trace.records import Token
from tests.cases import cases

LONG = "one line without an end " * 20_000


@cases(
    "by_line, text",
    product([False, True], [LONG, "x" * len(LONG), " " * len(LONG), f"{LONG}\n\n{LONG}"]),
)
def test_a_long_line_is_read_in_pieces_that_hold_all_of_it(by_line, text, tmp_path: Path) -> None:
    file = tmp_path / "corpus.txt"
    file.write_text(text)
    pieces = list(Corpus(file, by_line)._pieces())
    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= 2 * PIECE
    if " " in text:
        assert all(piece[-1].isspace() for piece in pieces[:-1])


def test_lines_are_pieces_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "corpus.txt"
    file.write_text("one\n\ntwo three\nfour")
    assert list(Corpus(file, by_line=True)._pieces()) == ["one\n", "\n", "two three\n", "four"]


def test_only_a_line_break_is_one() -> None:
    texts = ["\n", " \n", " ", "\t", "▁", "a"]
    classes = token_classes([Token(id_, text) for id_, text in enumerate(texts)])
    named = [CLASSES[at] for at in classes]
    assert named == [*["line break"] * 2, *["space"] * 3, "start of a word"]


def test_a_corpus_that_never_ends_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "zero.txt").symlink_to("/dev/zero")
    for name in ("pipe.txt", "zero.txt"):
        with pytest.raises(ValueError, match="ordinary"):
            Corpus(tmp_path / name).hash()
