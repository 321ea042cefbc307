"""The baselines: proper distributions, by the formula, and ordered as they must be."""

import numpy as np
import pytest

from tools.training.publishing import Bigram, Unigram


def text(seed: int, length: int) -> np.ndarray:
    """Ids in which each token mostly follows from the one before."""
    random = np.random.default_rng(seed)
    ids = [0]
    while len(ids) < length:
        follows = (ids[-1] * 3 + 1) % 11
        ids.append(follows if random.random() < 0.7 else int(random.integers(11)))
    return np.array(ids)


def test_the_bigrams_of_every_context_sum_to_one() -> None:
    bigram = Bigram(text(0, 60), vocabulary=15)  # 11 to 14 are never seen
    everything = np.arange(15)
    sums = [bigram.probabilities(np.full(15, before), everything).sum() for before in everything]
    assert sums == pytest.approx([1.0] * 15)


def test_a_bigram_is_kneser_neys_formula_by_hand() -> None:
    ids = np.array([0, 1, 0, 1, 0, 2, 0, 2])  # pairs 01 01 10 10 02 02 20: once 1, twice 3
    bigram = Bigram(ids, vocabulary=3)
    discount = 1 / (1 + 2 * 3)
    general = np.array([3, 2, 2]) / 7  # distinct contexts 2, 1, 1, each raised by one
    expected = (2 - discount) / 4 + discount * 2 / 4 * general[1]
    assert bigram.probabilities(np.array([0]), np.array([1]))[0] == pytest.approx(expected)


def test_one_token_of_context_beats_none_on_new_text() -> None:
    rows = text(1, 400).reshape(4, 100)
    unigram, bigram = (kind(text(0, 5000), vocabulary=11).loss(rows) for kind in (Unigram, Bigram))
    assert bigram < unigram - 0.5
