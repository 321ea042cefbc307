"""Tokens and their bytes, the table of embeddings, and one word in two sentences."""

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from model import Model, Trace
from model.analysis.tokens.embeddings import (
    neighbours,
    one_hot_product,
    places_of,
    shared_tokens,
    similarity,
)
from model.loading.bert import word_pieces
from model.run.tokenizers import clean, gpt2, gpt2_tokens, pieces, spelled
from model.trace.records import Token
from tests.model.tiny import loaded, sentence

FOX = "a fox 🦊 and é"


def test_the_bytes_of_all_tokens_are_the_text() -> None:
    for tokens in (gpt2_tokens(FOX), loaded("stories").tokens(FOX)):
        assert b"".join(token.raw for token in tokens).decode() == FOX


@given(st.text())
def test_gpt2_reads_any_text_and_its_special_token_is_text(text: str) -> None:
    tokens = gpt2_tokens(text + "<|endoftext|>")
    assert gpt2().decode([token.id for token in tokens]) == clean(text) + "<|endoftext|>"
    assert all(token.id != gpt2().eot_token for token in tokens)


@given(st.text())
def test_a_token_is_part_of_a_character_exactly_where_its_bytes_are_no_text(text: str) -> None:
    for piece in pieces(gpt2_tokens(text)):
        try:
            whole = piece.token.raw.decode() == piece.spelled
        except UnicodeDecodeError:
            whole = False
        assert whole == (piece.part_of == "")


def test_half_a_character_is_written_in_bytes_with_the_character_it_belongs_to() -> None:
    halves = [piece for piece in pieces(gpt2_tokens("🦊")) if piece.part_of]
    assert len(halves) > 1
    assert {piece.part_of for piece in halves} == {"🦊"}
    assert " ".join(piece.hexadecimal for piece in halves) == "F0 9F A6 8A"
    assert spelled(b"\xf0\x9f") == "‹F09F›"
    assert spelled(b"x\xc3") == "x‹C3›"


def test_a_replacement_character_that_was_typed_is_a_whole_one() -> None:
    typed = pieces(gpt2_tokens("�"))
    assert "".join(piece.hexadecimal for piece in typed).replace(" ", "") == "EFBFBD"
    token = Token(0, "�", "�".encode())
    assert pieces([token])[0].part_of == ""
    assert pieces([token])[0].spelled == "�"


def test_word_pieces_are_those_of_the_model() -> None:
    found = word_pieces()
    assert found.tokens("embeddings") == loaded("minilm").tokens("embeddings")
    assert all(piece.spelled == piece.token.text for piece in pieces(found.tokens("embeddings")))


def test_damaged_word_pieces_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTENTION_CACHE", str(tmp_path))
    assert word_pieces() is None
    folder = tmp_path / "minilm"
    folder.mkdir()
    (folder / "tokenizer.json").write_text("{}")
    assert word_pieces() is None


def test_one_hot_times_table_is_the_row_and_what_the_pass_used(model: Model, trace: Trace) -> None:
    scale = model.config.d_model**0.5 if model.config.scaled_embedding else 1.0
    for token, used in zip(trace.tokens, trace.embeddings, strict=True):
        product = one_hot_product(model.embedding, token.id)
        hot = F.one_hot(torch.tensor(token.id), model.config.d_vocab).float()
        theirs = hot @ model.module.embedding.tokens.weight.cpu()
        np.testing.assert_array_equal(product, model.embedding[token.id])
        np.testing.assert_allclose(product, theirs.numpy(), atol=1e-7)
        np.testing.assert_allclose(product * np.float32(scale), used, rtol=1e-6)


def test_neighbours_are_those_of_a_brute_force(model: Model) -> None:
    table = torch.tensor(model.embedding)
    for id_ in (0, 5, model.config.d_vocab - 1):
        found = F.cosine_similarity(table.double(), table[id_].double()[None], dim=1)
        found[id_] = -2
        expected = found.topk(8)
        ours = neighbours(model.embedding, id_, 8)
        np.testing.assert_allclose([n.cosine for n in ours], expected.values, atol=1e-5)
        assert id_ not in {n.id for n in ours}
        for neighbour in ours:
            assert neighbour.cosine == pytest.approx(float(found[neighbour.id]), abs=1e-5)


def test_a_zero_row_is_like_nothing_and_gives_no_nan() -> None:
    table = np.array([[1, 0], [0, 0], [1, 1]], np.float32)
    assert [n.cosine for n in neighbours(table, 1, 2)] == [0, 0]
    assert [(n.id, round(n.cosine, 4)) for n in neighbours(table, 0, 5)] == [(2, 0.7071), (1, 0)]


def test_a_token_in_identical_sentences_is_alike_at_every_state(model: Model) -> None:
    text = sentence(model)
    one, other = model.trace(text), model.trace(text)
    place = next(place for place, token in enumerate(one.tokens) if not token.special)
    found = similarity(one, other, (place, place))
    np.testing.assert_allclose(found.word, 1, atol=1e-6)
    assert len(found.word) == 1 + len(one.residual[one.source])
    assert (found.others < 0.999).all()


@pytest.mark.models(["gpt", "bert", "stories", "minilm"])
def test_a_token_starts_alike_and_becomes_unlike_in_another_sentence(model: Model) -> None:
    one, other = model.trace("the big cat saw a dog"), model.trace("a small dog sat on the cat")
    token = next(t for t in shared_tokens(one.tokens, other.tokens) if "cat" in t.text)
    places = places_of(one.tokens, token.id)[0], places_of(other.tokens, token.id)[0]
    found = similarity(one, other, places)
    assert found.word[0] == pytest.approx(1, abs=1e-6)
    assert found.word[-1] < found.word[0] - 1e-4
    left = torch.tensor(one.residual[one.source][-1][places[0]])
    right = torch.tensor(other.residual[other.source][-1][places[1]])
    assert found.word[-1] == pytest.approx(float(F.cosine_similarity(left, right, dim=0)), abs=1e-5)


def test_in_a_gpt_a_common_beginning_stays_alike() -> None:
    model = loaded("stories")
    one, other = model.trace("Tom saw the cat"), model.trace("Tom saw the dog again")
    np.testing.assert_allclose(similarity(one, other, (2, 2)).word, 1, atol=1e-5)


def test_shared_tokens_leave_out_what_the_tokenizer_added() -> None:
    model = loaded("minilm")
    one, other = model.tokens("the cat saw the dog"), model.tokens("a dog and the fish")
    assert [token.text for token in shared_tokens(one, other)] == ["the", "dog"]
    assert places_of(one, shared_tokens(one, other)[0].id) == (1, 4)


def test_a_sentence_of_one_token_has_no_others_to_be_compared_with() -> None:
    model = loaded("gpt")
    found = similarity(model.trace("cat"), model.trace("cat"), (0, 0))
    assert found.others is None
    np.testing.assert_allclose(found.word, 1, atol=1e-6)
