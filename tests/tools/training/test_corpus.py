"""The books that house-gpt learns from: its vocabulary, its rows, and what is held out."""

import numpy as np
import pytest

from model.loading.shipped import ASSETS, load_asset
from tools.training import corpus


def tiny_corpus() -> corpus.TokenCorpus:
    text = "\n".join(f"The {word} king saw the {word} queen." for word in ("old", "young") * 200)
    return corpus.from_texts({"bible": text, "austen": text, "shakespeare": text})


def test_what_is_held_out_is_never_in_a_row_to_learn_from() -> None:
    lines = [f"Line {number} of the book." for number in range(1000)]
    learned, held_out = corpus.split("\n".join(lines))
    assert not set(learned.splitlines()) & set(held_out.splitlines())
    assert sorted(learned.splitlines() + held_out.splitlines()) == sorted(lines)
    assert 30 <= len(held_out.splitlines()) <= 50


def test_the_vocabulary_holds_the_bytes_and_the_words_people_type() -> None:
    tokenizer = tiny_corpus().tokenizer
    assert tokenizer.size == corpus.VOCABULARY
    assert tokenizer.new_words("The quick brown fox jumps over the lazy dog.") == ()
    assert tokenizer.decode(tokenizer.encode("naïve 🦊 zyzzyva")) == "naïve 🦊 zyzzyva"


def test_a_row_is_running_text_of_the_length_asked_for() -> None:
    books = tiny_corpus()
    row = books.row(np.random.default_rng(0), 30)
    assert row.shape == (30,)
    assert "king saw the" in books.tokenizer.decode(row.tolist())
    held_out = books.held_out_rows(np.random.default_rng(0), 20, count=2)
    assert held_out.shape == (6, 20)


@pytest.mark.slow
def test_the_books_are_those_that_the_shipped_model_learned_from() -> None:
    """Its vocabulary holds their most frequent tokens, so other books give another one."""
    books = corpus.load()
    _, tokenizer, _ = load_asset(ASSETS / "house-gpt")
    assert books.tokenizer.description() == tokenizer.description()
