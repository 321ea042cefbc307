"""Operations on axes of a model's own tensors give the recorded numbers."""

import numpy as np
import pytest
import torch

from model.code.live_axes import MOST_TOKENS, queries_by_head, softmax_over
from tests.model import hub_models
from tests.model.tiny import loaded, sentence


def test_the_queries_cut_into_heads_are_the_recorded_ones(subtests: pytest.Subtests) -> None:
    """From W_Q's output, which the trace does not hold; with rotary positions, those follow."""
    for name in [
        "stories",
        "house-gpt",
        "minilm",
        "translate-en-fr",
        "llama, grouped",
        "induction",
    ]:
        with subtests.test(name=name):
            model = hub_models.loaded("llama") if "grouped" in name else loaded(name)
            trace = model.trace(sentence(model))
            for attention in trace.attention:
                found = queries_by_head(model, trace, attention)
                assert found.apart < 1e-4 * np.abs(attention.query).max()
                assert found.outcome.after.shape == (1, *attention.query.shape)
                assert found.outcome.shared
                assert not found.outcome.after.contiguous or 1 in found.outcome.after.shape[1:3]


def test_over_the_keys_the_softmax_gives_the_models_weights_and_over_others_it_does_not() -> None:
    model = loaded("stories")
    attention = model.trace(sentence(model)).attention[1]
    scores = torch.tensor(np.stack([attention.masked(head) for head in range(attention.heads)]))
    own = np.stack([attention.weights(head) for head in range(attention.heads)])
    for axis in (-4, -3, -2, -1):
        found = softmax_over(attention, axis)
        made = found.outcome.after.values
        np.testing.assert_array_equal(made, torch.softmax(scores[None], axis).numpy())
        assert np.allclose(made[0], own, atol=1e-6) == (axis == -1)
        assert (found.apart is not None) == (axis == -1)
        # Where the future is masked for every head, a softmax over the heads divides 0 by 0.
        assert np.isnan(made).any() == (axis in (-4, -3))


def test_a_long_text_is_cut_and_then_nothing_is_compared() -> None:
    model = loaded("stories")
    attention = model.trace("the cat " * 60).attention[0]
    found = softmax_over(attention, -1)
    assert found.outcome.after.shape[-2:] == (MOST_TOKENS, MOST_TOKENS)
    assert found.apart is None
