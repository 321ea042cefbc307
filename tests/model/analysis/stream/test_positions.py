"""Positions of every kind, what is added up, and whether word order is told apart."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from model import Intervention, Model, Trace
from model.analysis.stream.positions import (
    learned,
    rotary,
    rotary_similarity,
    similarity,
    sinusoidal,
)
from model.analysis.tokens.embeddings import reordered, same_tokens
from model.nn.layers import rotary_angles, sinusoids
from tests.cases import cases
from tests.model.tiny import loaded

NO_POSITIONS = Intervention(positions=False)
LIFTED = Intervention(positions=False, mask="none")
LION, TIGER = "lion kills tiger", "tiger kills lion"


@cases("width", [2, 4, 16, 130])
def test_sinusoids_are_those_of_the_formula(width) -> None:
    table = sinusoidal(40, width)
    assert table.shape == (40, width)
    for position in range(40):
        for pair in range(width // 2):
            angle = position / 10_000 ** (2 * pair / width)
            assert table[position, 2 * pair] == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[position, 2 * pair + 1] == pytest.approx(math.cos(angle), abs=1e-6)


def test_the_tables_are_those_that_the_models_use() -> None:
    np.testing.assert_allclose(sinusoidal(64, 24), sinusoids(64, 24), atol=1e-6)
    np.testing.assert_allclose(rotary(64, 8, 500.0), rotary_angles(64, 8, 500.0), rtol=1e-6)
    trace = loaded("translator").trace("the cat saw the cat", "le chat")
    np.testing.assert_allclose(sinusoidal(5, 24), trace.positions, atol=1e-6)
    turned = loaded("llama").trace("the cat saw the cat")
    np.testing.assert_allclose(rotary(5, 8), turned.positions, rtol=1e-6)


def test_the_learned_table_is_what_the_pass_adds(model: Model, trace: Trace) -> None:
    table = learned(model)
    assert (table is None) == (model.config.positions != "learned")
    if table is not None:
        assert table.shape == (model.config.n_ctx, model.config.d_model)
        np.testing.assert_array_equal(table[: len(trace.tokens)], trace.positions)


def test_likeness_is_the_cosine_of_every_two_rows() -> None:
    table = torch.randn(9, 6)
    table[4] = 0
    expected = F.cosine_similarity(table[:, None], table[None], dim=-1)
    np.testing.assert_allclose(similarity(table.numpy()), expected, atol=1e-6)


def test_rotary_likeness_is_the_score_of_equal_pairs_turned() -> None:
    angles = rotary(12, 8)
    pair = torch.tensor([1.0, 0.0]).repeat(4)

    def turned(position: int) -> torch.Tensor:
        blocks = [
            torch.tensor([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]])
            for a in angles[position].tolist()
        ]
        return torch.block_diag(*blocks) @ pair

    found = rotary_similarity(angles)
    for query in (0, 3, 11):
        for key in (0, 5):
            expected = float(turned(query) @ turned(key)) / 4
            assert found[query, key] == pytest.approx(expected, abs=1e-6)
    np.testing.assert_allclose(found, similarity(sinusoidal(12, 8)), atol=1e-6)


def largest(model: Model, intervention: Intervention) -> float:
    return reordered(
        model.trace(LION, intervention=intervention), model.trace(TIGER, intervention=intervention)
    ).largest


@pytest.mark.models(["bert", "minilm", "encoder-rotary"])
def test_without_positions_lion_and_tiger_are_the_same_in_an_encoder(model: Model) -> None:
    assert largest(model, NO_POSITIONS) < 1e-4
    assert largest(model, Intervention()) > 1e-2


@pytest.mark.models(["gpt", "gpt-post", "llama"])
def test_a_causal_mask_carries_order_and_lifting_it_loses_order(model: Model) -> None:
    assert largest(model, NO_POSITIONS) > 1e-2
    assert largest(model, LIFTED) < 1e-4


def test_equal_tokens_are_laid_beside_each_other_in_turn() -> None:
    model = loaded("bert")
    one, other = model.tokens("the cat saw the dog"), model.tokens("the dog saw the cat")
    places = same_tokens(one, other)
    assert [one[here].id for here, _ in places] == [other[there].id for _, there in places]
    assert sorted(there for _, there in places) == list(range(5))
    assert places[0] == (0, 0)
    assert places[3] == (3, 3)


@cases("other", ["the cat saw the", "the cat saw the cat", "the cat saw a dog"])
def test_sentences_of_other_tokens_are_refused_by_name(other) -> None:
    model = loaded("bert")
    with pytest.raises(ValueError, match=r"Only in the (first|second): “(dog|the)”"):
        same_tokens(model.tokens("the cat saw the dog"), model.tokens(other))
