"""Temperature, top-k and top-p, held against Hugging Face's, and the logit lens."""

import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model import Model, Trace
from model.analysis.heads.statistics import entropy
from model.analysis.tokens.prediction import (
    Sampling,
    divergence,
    expectation,
    lens,
    likeliest,
    probabilities,
    temperature,
    top_k,
    top_p,
)
from tests.cases import cases
from tests.model.tiny import loaded, of_shape, sentence

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

VOCABULARY = 200


def logits(seed: int, size: int = VOCABULARY) -> np.ndarray:
    """A row of logits, (1, size); as peaked as a model's."""
    return np.random.default_rng(seed).normal(0, 3, (1, size)).astype(np.float32)


@cases("sampling", [
    Sampling(),
    Sampling(0.3),
    Sampling(2.5),
    Sampling(1, 7),
    Sampling(1, 1),
    Sampling(1, 500),
    Sampling(1, None, 0.5),
    Sampling(1, None, 0.01),
    Sampling(0.7, 40, 0.9),
    Sampling(1.8, 5, 0.35),
])  # fmt: skip
def test_what_is_drawn_from_is_what_hugging_face_draws_from(sampling) -> None:
    for seed in range(40):
        row = logits(seed)
        scores = TemperatureLogitsWarper(float(sampling.temperature))(
            None, torch.tensor(row).double()
        )
        if sampling.top_k is not None:
            scores = TopKLogitsWarper(sampling.top_k)(None, scores)
        if sampling.top_p < 1:
            scores = TopPLogitsWarper(sampling.top_p)(None, scores)
        ours = sampling.of(row)
        np.testing.assert_array_equal(ours == 0, np.isneginf(scores.numpy()))
        np.testing.assert_allclose(ours, scores.softmax(-1).numpy(), atol=1e-12)


@given(st.floats(0.05, 5), st.integers(1, 300), st.floats(0.01, 1), st.integers(0, 10_000))
def test_every_distribution_sums_to_one_and_keeps_the_order_of_the_tokens(
    divisor: float, count: int, share: float, seed: int
) -> None:
    row = logits(seed)[0]
    own = probabilities(row)
    for shares in (temperature(row, divisor), top_k(own, count), top_p(own, share)):
        assert math.isclose(shares.sum(), 1, rel_tol=1e-9)
        assert (np.diff(shares[np.argsort(row)]) >= 0).all()


def test_temperature_one_is_the_softmax_and_a_low_one_leaves_the_likeliest_alone() -> None:
    row = logits(0)
    expected = torch.tensor(row).double().softmax(-1).numpy()
    np.testing.assert_allclose(temperature(row, 1), expected, rtol=1e-12)
    assert temperature(row, 0.01).max() == pytest.approx(1, abs=1e-4)
    flat = temperature(row, 1e6)
    np.testing.assert_allclose(flat, 1 / VOCABULARY, rtol=1e-4)


def test_a_higher_temperature_has_a_higher_entropy() -> None:
    entropies = [float(entropy(temperature(logits(3)[0], t))) for t in (0.2, 0.5, 1, 2, 5)]
    assert entropies == sorted(entropies)
    assert entropies[-1] < math.log(VOCABULARY)


def test_top_k_keeps_so_many_and_those_equal_to_the_last() -> None:
    assert (top_k(probabilities(logits(1)), 7) > 0).sum() == 7
    equal = np.array([0.4, 0.2, 0.2, 0.2])
    assert (top_k(equal, 2) > 0).sum() == 4
    np.testing.assert_allclose(top_k(np.array([0.5, 0.3, 0.2]), 2), [0.625, 0.375, 0])


def test_top_p_keeps_the_smallest_set_that_holds_the_share() -> None:
    given_ = np.array([0.125, 0.5, 0.25, 0.125])
    np.testing.assert_allclose(top_p(given_, 0.5), [0, 1, 0, 0])
    np.testing.assert_allclose(top_p(given_, 0.51), [0, 2 / 3, 1 / 3, 0])
    np.testing.assert_allclose(top_p(given_, 0.75), [0, 2 / 3, 1 / 3, 0])
    np.testing.assert_allclose(top_p(given_, 1), given_)
    for share in (0.1, 0.5, 0.9):
        own = probabilities(logits(5)[0])
        kept = top_p(own, share) > 0
        assert own[kept].sum() >= share
        assert own[kept].sum() - own[kept].min() < share


def test_entropy_agrees_with_pytorch_and_cut_tokens_add_nothing() -> None:
    shares = top_k(probabilities(logits(2)[0]), 9)
    expected = torch.distributions.Categorical(torch.tensor(shares)).entropy()
    assert float(entropy(shares)) == pytest.approx(float(expected), abs=1e-9)
    assert float(entropy(np.array([1.0, 0.0]))) == 0
    assert float(entropy(np.full(8, 1 / 8))) == pytest.approx(math.log(8))


def test_divergence_agrees_with_pytorch_and_is_zero_without_an_intervention() -> None:
    one, other = logits(1)[0], logits(2)[0]
    shares = [torch.tensor(row).double().log_softmax(-1) for row in (other, one)]
    expected = torch.nn.functional.kl_div(*shares, log_target=True, reduction="sum")
    assert divergence(one, other) == pytest.approx(float(expected))
    assert divergence(one, one) == 0
    far = np.float32([0.0, 2000.0])  # a token's probability vanishes in float64
    assert divergence(far, far[::-1]) == pytest.approx(2000)


@cases("choices", [
    {"temperature": 0},
    {"temperature": -1},
    {"top_k": 0},
    {"top_p": 0},
    {"top_p": 1.5},
    {"temperature": math.nan},
])  # fmt: skip
def test_what_leaves_nothing_to_draw_from_is_refused(choices) -> None:
    with pytest.raises(ValueError, match="must"):
        Sampling(**choices)


def test_the_listed_tokens_and_the_rest_share_everything() -> None:
    before, after = logits(1)[0], logits(2)[0]
    listed = expectation(before, after, 6)
    for shares, others in zip((listed.before, listed.after), listed.others, strict=True):
        assert sum(shares) + others == pytest.approx(1)
    assert listed == likeliest(probabilities(before), probabilities(after), 6)
    assert max(listed.before) == probabilities(before).max()
    assert max(listed.after) == probabilities(after).max()


@pytest.mark.models(of_shape("decoder", "encoder-decoder"))
def test_the_lens_ends_at_the_models_own_prediction(model: Model, trace: Trace) -> None:
    states = trace.residual["decoder"]
    seen = lens(model.unembed, states, trace.logits)
    assert seen.ids.shape == seen.shares.shape == (len(states), len(trace.logits))
    np.testing.assert_array_equal(seen.ids[-1], trace.logits.argmax(-1))
    np.testing.assert_allclose(seen.shares[-1], probabilities(trace.logits).max(-1), atol=1e-5)
    np.testing.assert_array_equal(seen.final[-1], seen.shares[-1])
    assert seen.difference < 1e-3
    for state, ids, shares, final in zip(states, seen.ids, seen.shares, seen.final, strict=True):
        expected = torch.tensor(model.unembed(state)).double().softmax(-1)
        np.testing.assert_allclose(shares, expected.max(-1).values, rtol=1e-9)
        np.testing.assert_array_equal(ids, expected.argmax(-1))
        np.testing.assert_allclose(
            final, expected[torch.arange(len(final)), torch.tensor(seen.ids[-1])], rtol=1e-9
        )


def test_a_lens_that_misses_the_final_norm_shows_in_its_difference() -> None:
    model = loaded("gpt")
    read = model.trace(sentence(model))
    assert read.logits is not None
    bare = lens(lambda state: state @ model.embedding.T, read.residual["decoder"], read.logits)
    assert bare.difference > 0.1
