"""Readers of the books: words in, markup and notes out."""

import struct

import numpy as np
import pytest

from model.training import corpus, rdata
from model.training.texts import plain_osis, plain_paragraphs


def test_osis_keeps_the_words_and_drops_notes_and_titles() -> None:
    osis = (
        '<title level="1">Exodus</title><div sID="g" type="x-p"/><chapter n="1" sID="E"/>'
        '<w lemma="H1">Now</w> <w>these</w> are<note placement="foot"><reference>1:2 </reference>'
        'or: were</note> names. <div eID="g" type="x-p"/> <lg sID="l"/>“Don’t<l sID="b"/>go.”'
    )
    assert plain_osis(osis) == 'Now these are names.\n"Don\'t go."'


def test_paragraphs_are_one_a_line_without_shouted_titles() -> None:
    text = "CHAPTER I\n\nIt was _very_\ncold --\n\n\n***\n\nThen it\twas not."
    assert plain_paragraphs(text, separator="\n\n") == "It was very cold --\nThen it was not."


def r_text(text: str) -> bytes:
    return struct.pack(">ii", 0x40009, len(text)) + text.encode()


def r_data(body: bytes) -> bytes:
    return b"X\n" + struct.pack(">iii", 2, 0x30000, 0x20300) + body


def test_r_texts_and_named_lists_are_read() -> None:
    texts = struct.pack(">ii", 16, 2) + r_text("one") + r_text("two")
    assert rdata.read(r_data(texts)) == ["one", "two"]
    numbers = struct.pack(">iiii", 13, 2, 7, 9)
    symbol = struct.pack(">i", 1) + r_text("names")
    names = struct.pack(">ii", 16, 1) + r_text("place")
    attributes = struct.pack(">i", 0x402) + symbol + names + struct.pack(">i", 254)
    named = struct.pack(">ii", 0x213, 1) + numbers + attributes
    assert rdata.read(r_data(named)) == {"place": [7, 9]}


def test_other_bytes_are_refused_with_a_sentence() -> None:
    with pytest.raises(ValueError, match="not R data"):
        rdata.read(b"RDX3\n")
    with pytest.raises(ValueError, match="R type 14"):
        rdata.read(r_data(struct.pack(">ii", 14, 0)))


def tiny_corpus() -> corpus.Corpus:
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
