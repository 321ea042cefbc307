"""Small profiles, made once."""

from pathlib import Path

import pytest

from model.profile import Profile, profile
from tests.model.profile.sentences import SENTENCES, WINDOW


@pytest.fixture(scope="session")
def saved_profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the induction model over letters. No test changes it."""
    folder = tmp_path_factory.mktemp("letters")
    corpus = folder / "letters.txt"
    corpus.write_text("a b c a b c\nd e f d e f d\nq r q r q r\na z y a z y a")
    profile("induction", corpus, folder / "book-profile", by_line=True)
    return folder / "book-profile"


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the sentences."""
    file = tmp_path_factory.mktemp("corpus") / "sentences.txt"
    file.write_text("\n".join(SENTENCES))
    return file


@pytest.fixture(scope="session")
def whole(corpus: Path) -> Profile:
    """Of house-gpt over all sentences. No test changes it."""
    found = profile("house-gpt", corpus, by_line=True, window=WINDOW)
    assert found.sums.windows == len(SENTENCES) == 48
    return found
