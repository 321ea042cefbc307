"""Small profiles, made once."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from model import Model
from model.profile import Profile, profile
from model.profile.battery import labels
from model.run.weights_hash import weights_hash
from tests.model.profile.sentences import SENTENCES, WINDOW


@pytest.fixture(autouse=True, scope="session")
def _labelled_once() -> Iterator[None]:
    """The heads of a model are asked for their labels once: the same weights give the same table."""
    known: dict[str, pd.DataFrame] = {}

    def once(model: Model) -> pd.DataFrame:
        weights = weights_hash(model)
        if weights not in known:
            known[weights] = labels(model)
        return known[weights].copy()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("model.profile.run.labels", once)
        yield


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
