"""What an intervention did: every number from the two traces, on models of every shape."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from model import Intervention, Model
from model.analysis.run_comparison import (
    divergences,
    largest_difference,
    losses,
    movement,
    predicted,
    rounding,
    row_statistics,
)
from model.trace.collect import words_of
from tests.model.tiny import TINY, loaded, of_shape, run, sentence, target

PREDICTS = of_shape("decoder", "encoder-decoder")


def shuffled(model: Model) -> Intervention:
    """An intervention that every model feels."""
    return Intervention(scale=2.0, ablated=frozenset({(model.attention_names[0], 1)}))


@pytest.mark.models(PREDICTS)
def test_the_loss_is_pytorchs_cross_entropy_of_the_tokens_that_follow(model: Model) -> None:
    trace = run(model)
    ids = torch.tensor([token.id for token in predicted(trace)])
    expected = F.cross_entropy(torch.tensor(trace.logits)[:-1], ids, reduction="none")
    np.testing.assert_allclose(losses(trace), expected, atol=1e-4)
    read = trace.target_tokens or trace.tokens
    assert [token.id for token in read[1:]] == ids.tolist()


@pytest.mark.models(PREDICTS)
def test_the_divergence_is_pytorchs_and_nothing_without_an_intervention(model: Model) -> None:
    before, after = run(model), run(model, shuffled(model))
    ours, theirs = (
        torch.log_softmax(torch.tensor(trace.logits).double(), -1) for trace in (before, after)
    )
    expected = F.kl_div(theirs, ours, log_target=True, reduction="none").sum(-1)
    np.testing.assert_allclose(divergences(before, after), expected, atol=1e-9)
    assert divergences(before, after).max() > 1e-6
    assert (divergences(before, run(model)) == 0).all()


def test_the_stream_moves_where_something_changed_and_nowhere_else(model: Model) -> None:
    before, after = run(model), run(model, shuffled(model))
    for stack in model.stacks():
        moved = movement(before, after, stack)
        expected = np.linalg.norm(after.streams[stack] - before.streams[stack], axis=-1)
        np.testing.assert_allclose(moved.distance, expected, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(moved.share * moved.length, moved.distance, rtol=1e-5)
        assert (moved.distance[0] == 0).all()  # the embedding comes before all attention
        assert moved.distance[-1].max() > 0
        assert (movement(before, run(model), stack).distance == 0).all()
    assert largest_difference(before, after) > 0
    assert largest_difference(before, run(model)) == 0


@pytest.mark.models(TINY)
def test_rows_are_sharp_without_dividing_and_even_without_scores(model: Model) -> None:
    before = run(model)
    even = run(model, Intervention(scale=0.0))
    for unchanged, flat in zip(before.attention, even.attention, strict=True):
        mask = flat.mask if flat.mask is not None else np.ones(flat.weights(0).shape, bool)
        rows = row_statistics(flat)
        np.testing.assert_allclose(rows.entropy, [np.log(mask.sum(-1))] * flat.heads, atol=1e-5)
        np.testing.assert_allclose(rows.largest, [1 / mask.sum(-1)] * flat.heads, atol=1e-6)
        assert row_statistics(unchanged).entropy.mean() <= rows.entropy.mean()
        assert not rows.empty.any()


@pytest.mark.models(TINY)
def test_a_row_with_every_key_masked_reads_nothing_and_is_no_nan(model: Model) -> None:
    keys = len(run(model).tokens)
    place = f"{'decoder' if model.config.shape == 'decoder' else 'encoder'}.0.self"
    intervention = Intervention(
        blocked=frozenset((2, key) for key in range(keys)), only=frozenset({place})
    )
    trace = run(model, intervention)
    rows = row_statistics(trace.find(place))
    assert rows.empty[:, 2].all()
    assert rows.empty.sum() == trace.find(place).heads
    assert (rows.entropy[:, 2] == 0).all()
    assert (rows.largest[:, 2] == 0).all()
    assert np.isfinite(movement(run(model), trace, trace.source).share).all()
    finite = run(
        model, Intervention(blocked=intervention.blocked, only=intervention.only, fill=-1e9)
    )
    np.testing.assert_allclose(finite.find(place).weights(0)[2], 1 / keys, rtol=1e-5)


def test_an_encoder_has_no_loss_and_other_tokens_are_refused() -> None:
    encoder, decoder = loaded("bert"), loaded("gpt")
    with pytest.raises(ValueError, match="predicts no next token"):
        losses(run(encoder))
    with pytest.raises(ValueError, match="predicts no next token"):
        divergences(run(encoder), run(encoder))
    one, other = decoder.trace("the cat"), decoder.trace("the dog sat")
    with pytest.raises(ValueError, match="different tokens"):
        largest_difference(one, other)
    assert losses(decoder.trace("the")).shape == (0,)


def test_many_changed_runs_leave_the_shipped_baseline_bit_for_bit() -> None:
    model = loaded("stories")
    before = run(model)
    name = model.attention_names[0]
    for intervention in (
        Intervention(scale=1.0),
        Intervention(mask="none"),
        Intervention(hidden=frozenset({1}), fill=0.0),
        Intervention(blocked=frozenset({(0, 0)}), fill=-1e9),
        Intervention(positions=False),
        Intervention(ablated=frozenset((name, head) for head in range(4))),
        Intervention(dropout=0.5, seed=9, only=frozenset({name})),
    ):
        assert (
            largest_difference(before, model.trace(sentence(model), target(model), intervention))
            > 0
        )
        assert largest_difference(before, run(model)) == 0


def test_an_even_row_over_n_keys_has_entropy_ln_n() -> None:
    rows = row_statistics(run(loaded("gpt"), Intervention(scale=0.0)).attention[0])
    assert rows.entropy[0, 4] == pytest.approx(math.log(5), abs=1e-6)


def test_half_precision_rounds_as_pytorch_says() -> None:
    exact = run(loaded("gpt"))
    for precision in (torch.float32, torch.bfloat16, torch.float16):
        trace = replace(exact, device=words_of(torch.device("cpu"), precision))
        share = torch.finfo(precision).eps / torch.finfo(torch.float32).eps
        assert rounding(trace) == pytest.approx(share * rounding(exact))
