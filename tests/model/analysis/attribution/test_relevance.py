"""Relevance of tokens, against passes and gradients of plain PyTorch."""

import numpy as np
import pytest
import torch

from model import Intervention, Model, Trace
from model.analysis.attribution.relevance import (
    Relevance,
    rank_correlation,
    relevances,
    weight_gradients,
)
from tests.cases import cases
from tests.model import hub_models
from tests.model.tiny import build, loaded, run

PREDICTING = ("gpt", "llama", "attention-only", "gpt-post", "translator", "translator-pre")
FAMILIES = ("gpt2", "llama", "gpt_neox", "opt", "bart", "gemma")


def last(model: Model, trace: Trace, token: int, **options: int) -> Relevance:
    *_, found = relevances(model, trace, token, **options)
    return found


def with_mean_vector(name: str, trace: Trace, at: list[int]) -> torch.Tensor:
    """The last logits (vocabulary,) of a decoder that has the mean vector in an unused row of its table, and
    reads that row in place of some tokens."""
    model = build(name)
    table, ids = model.module.embedding.tokens.weight, model.ids(trace.tokens)
    unused = len(table) - 1
    assert unused not in ids
    table.data[unused] = table.mean(0)
    ids[0, at] = unused
    with torch.no_grad():
        return model.module(ids)[0, -1]


@cases("name", ["gpt", "llama", "gpt-post"])
def test_left_out_is_the_models_own_pass_with_the_mean_vector(name) -> None:
    model = loaded(name)
    trace = run(model)
    token = 7
    found = last(model, trace, token, steps=2)
    length = len(trace.tokens)
    assert found.logit == pytest.approx(float(trace.logits[-1, token]), abs=1e-4)
    expected = [
        found.logit - float(with_mean_vector(name, trace, [at])[token]) for at in range(length)
    ]
    np.testing.assert_allclose(found.left_out, expected, atol=1e-4)
    everything = with_mean_vector(name, trace, list(range(length)))[token]
    assert found.baseline == pytest.approx(float(everything), abs=1e-4)


@cases("name", PREDICTING)
def test_integrated_gradients_add_up_to_what_all_tokens_do_together(name) -> None:
    model = loaded(name)
    trace = run(model)
    found = last(model, trace, 5, steps=200)
    scale = max(abs(found.logit - found.baseline), 1.0)
    assert found.incomplete < 0.02 * scale
    assert found.done == found.total == len(trace.tokens) + 200
    coarse = last(model, trace, 5, steps=2)
    assert coarse.incomplete > found.incomplete  # and it shows what too few steps leave


@cases("family", FAMILIES)
def test_it_holds_in_families_of_the_hub(family) -> None:
    model = hub_models.loaded(family)
    trace = hub_models.traced(model)
    found = last(model, trace, 3, steps=150)
    assert found.logit == pytest.approx(float(trace.logits[-1, 3]), abs=1e-4)
    assert found.incomplete < 0.05 * max(abs(found.logit - found.baseline), 1.0)
    for values in (found.left_out, found.integrated, found.by_attention):
        assert np.isfinite(values).all()
        assert np.abs(values).max() > 0


@cases("name", ["gpt", "translator"])
def test_the_gradient_for_a_weight_is_what_a_small_change_of_it_does(name) -> None:
    """By finite differences; what a token adds is the sum of weights times their gradients."""
    model, token, added = loaded(name), 5, np.zeros(len(run(loaded(name)).tokens))
    trace = run(model)
    gradients = weight_gradients(model, trace, token)
    for attention in trace.attention:
        assert gradients[attention.name].shape == attention.sizes
        if trace.keys_of(attention) == trace.tokens:
            products = gradients[attention.name] * attention.weights()
            added += products.sum((0, 1))
        head, query, key = 1, attention.sizes[1] - 1, attention.sizes[2] // 2
        value = torch.tensor(attention.value[head, key])
        logits = []
        for step in (-0.01, 0.01):

            def put(_: object, read: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
                changed = read[0].clone().unflatten(-1, (attention.heads, -1))
                changed[0, query, head] += step * value
                return (changed.flatten(-2),)

            handle = model.layer(attention.name).output.register_forward_pre_hook(put)
            logits.append(float(run(model).logits[-1, token]))
            handle.remove()
        found = gradients[attention.name][head, query, key]
        slope = (logits[1] - logits[0]) / 0.02
        assert found == pytest.approx(slope, abs=2e-3)
    assert max(np.abs(one).max() for one in gradients.values()) > 0.1
    np.testing.assert_allclose(last(model, trace, token, steps=1).by_attention, added, atol=1e-5)


def test_a_head_that_is_left_out_carries_nothing() -> None:
    model = loaded("gpt")
    heads = frozenset((name, head) for name in model.attention_names for head in range(3))
    trace = run(model, Intervention(ablated=heads))
    found = last(model, trace, 5, steps=40)
    assert np.abs(found.by_attention).max() == 0
    np.testing.assert_allclose(found.left_out[:-1], 0, atol=1e-5)  # only its own row is read
    np.testing.assert_allclose(found.integrated[:-1], 0, atol=1e-6)


def test_what_is_known_grows_batch_by_batch() -> None:
    model = loaded("gpt")
    trace = run(model)
    steps = list(relevances(model, trace, 5, steps=20))
    assert steps[0].done == 0
    assert np.isnan(steps[0].left_out).all()
    done = [step.done for step in steps]
    assert done == sorted(set(done))
    assert np.isnan(steps[-2].integrated).all()
    assert np.isfinite(steps[-1].integrated).all()


def test_a_text_of_one_token_has_a_relevance_too() -> None:
    model = loaded("gpt")
    found = last(model, model.trace("cat"), 5, steps=60)
    assert found.left_out == pytest.approx([found.logit - found.baseline], abs=1e-5)
    assert found.integrated == pytest.approx(found.left_out, rel=0.05, abs=0.02)


def test_an_encoder_and_an_unknown_token_are_refused() -> None:
    bert, gpt = loaded("bert"), loaded("gpt")
    with pytest.raises(ValueError, match="is an encoder"):
        last(bert, run(bert), 1)
    with pytest.raises(ValueError, match="999"):
        last(gpt, run(gpt), 999)


def test_the_rank_correlation_is_that_of_the_ranks() -> None:
    first = np.array([3.0, 1.0, 2.0, 10.0])
    assert rank_correlation(first, np.exp(first)) == pytest.approx(1)
    assert rank_correlation(first, -(first**3)) == pytest.approx(-1)
    # worked out by hand: ranks 1 2 3 4 and 2 1 4 3 give 1 - 6 · 4 / (4 · 15)
    assert rank_correlation(np.arange(4.0), np.array([2.0, 1, 4, 3])) == pytest.approx(0.6)
    ties = np.array([1.0, 2, 2, 3])
    assert rank_correlation(ties, np.array([1.0, 2.5, 2.5, 4])) == pytest.approx(1)
    assert rank_correlation(np.ones(4), first) is None
    assert rank_correlation(first[:2], first[:2]) is None


@cases("name", ["gpt", "translator"])
def test_of_two_tokens_each_number_is_that_of_one_minus_that_of_the_other(name) -> None:
    model = loaded(name)
    trace = run(model)
    one, other = (last(model, trace, token, steps=9) for token in (7, 5))
    both = last(model, trace, 7, against=5, steps=9)
    for field in ("left_out", "integrated", "by_attention", "logit", "baseline"):
        expected = getattr(one, field) - getattr(other, field)
        np.testing.assert_allclose(getattr(both, field), expected, atol=1e-4)
    with pytest.raises(ValueError, match="Choose two tokens"):
        last(model, trace, 7, against=7)
