"""A small profile in a folder, made once."""

from pathlib import Path

import pytest

from model.profile import profile


@pytest.fixture(scope="session")
def saved_profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the induction model over letters. No test changes it."""
    folder = tmp_path_factory.mktemp("letters")
    corpus = folder / "letters.txt"
    corpus.write_text("a b c a b c\nd e f d e f d\nq r q r q r\na z y a z y a")
    profile("induction", corpus, folder / "book-profile", by_line=True)
    return folder / "book-profile"
