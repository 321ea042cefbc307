"""What holds for every head of every model: the identities that the pages show."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from model import Attention, Model, Trace
from tests.model.tiny import loaded, of_shape, sentence, target

NEAR = 1e-5
TRANSLATORS = of_shape("encoder-decoder")


def every_head(trace: Trace) -> Iterator[tuple[Attention, int]]:
    assert trace.attention
    return ((a, head) for a in trace.attention for head in range(a.heads))


def may_look(attention: Attention) -> torch.Tensor:
    """What an unchanged model allows, written down without asking the model."""
    queries, keys = attention.query.shape[1], attention.key.shape[1]
    everything = torch.ones(queries, keys, dtype=torch.bool)
    return everything.tril() if attention.kind == "causal" else everything


def test_weights_times_values_are_what_the_model_computed(trace: Trace) -> None:
    for attention, head in every_head(trace):
        product = attention.weights(head) @ attention.value[head]
        np.testing.assert_allclose(product, attention.output[head], atol=NEAR)
        np.testing.assert_array_equal(product, attention.context(head))


def test_pytorchs_own_attention_gives_the_recorded_output(trace: Trace) -> None:
    for attention in trace.attention:
        query, key, value = (
            torch.tensor(vectors) for vectors in (attention.query, attention.key, attention.value)
        )
        output = F.scaled_dot_product_attention(query, key, value, attn_mask=may_look(attention))
        np.testing.assert_allclose(output.numpy(), attention.output, atol=NEAR)


def test_scores_are_dot_products_and_the_factor_is_one_over_the_root_of_the_width(
    trace: Trace,
) -> None:
    for attention, head in every_head(trace):
        width = attention.query.shape[-1]
        scores = np.einsum("qd,kd->qk", attention.query[head], attention.key[head])
        np.testing.assert_allclose(attention.scores(head), scores, atol=1e-4, rtol=NEAR)
        np.testing.assert_allclose(
            attention.scaled(head), attention.scores(head) / math.sqrt(width), rtol=NEAR
        )


def test_an_explicit_pass_computes_the_scores_and_weights_that_are_derived(
    model: Model, trace: Trace
) -> None:
    explicit = model.trace(sentence(model), target(model), explicit=True)
    for attention, derived in zip(explicit.attention, trace.attention, strict=True):
        assert attention.steps
        assert not derived.steps
        for head in range(attention.heads):
            for step in ("scores", "scaled", "masked", "weights", "context"):
                ours, theirs = getattr(attention, step)(head), getattr(derived, step)(head)
                np.testing.assert_allclose(ours, theirs, atol=2e-5, rtol=2e-5, err_msg=step)
        np.testing.assert_allclose(attention.output, derived.output, atol=NEAR)


@pytest.mark.models(of_shape("decoder"))
def test_a_later_word_leaves_earlier_rows_alone(model: Model) -> None:
    longer = sentence(model)
    shorter = longer.rsplit(maxsplit=1)[0]
    _assert_same_beginning(model.trace(shorter), model.trace(longer))


@pytest.mark.models(TRANSLATORS)
def test_a_later_target_word_leaves_earlier_rows_alone(model: Model) -> None:
    longer = target(model)
    shorter = longer.rsplit(maxsplit=1)[0]
    text = sentence(model)
    _assert_same_beginning(model.trace(text, shorter), model.trace(text, longer))


def _assert_same_beginning(shorter: Trace, longer: Trace) -> None:
    length = len(shorter.tokens_of("decoder"))
    assert length < len(longer.tokens_of("decoder"))
    for before, after in zip(shorter.attention, longer.attention, strict=True):
        keys = before.key.shape[1]
        for head in range(before.heads):
            rows = after.weights(head)[: before.query.shape[1], :keys]
            np.testing.assert_allclose(before.weights(head), rows, atol=NEAR)
        np.testing.assert_allclose(
            before.output, after.output[:, : before.output.shape[1]], atol=NEAR
        )
    assert shorter.logits is not None
    np.testing.assert_allclose(shorter.logits, longer.logits[:length], atol=1e-4, rtol=1e-4)


@pytest.mark.models(TRANSLATORS)
def test_cross_attention_joins_the_target_with_the_source(trace: Trace) -> None:
    crosses = [attention for attention in trace.attention if attention.kind == "cross"]
    assert crosses
    source, read = len(trace.tokens), len(trace.target_tokens)
    assert source != read
    for cross in crosses:
        assert cross.stack == "decoder"
        assert cross.query.shape[1] == cross.output.shape[1] == read
        assert cross.key.shape[1] == cross.value.shape[1] == source
        assert cross.weights(0).shape == (read, source)
        assert (len(trace.queries_of(cross)), len(trace.keys_of(cross))) == (read, source)


def test_records_stand_in_the_order_and_under_the_names_of_execution(model: Model) -> None:
    config = model.config
    decoder = ["self", "cross"] if config.shape == "encoder-decoder" else ["self"]
    names = [f"encoder.{layer}.self" for layer in range(config.encoder_layers)]
    names += [
        f"decoder.{layer}.{kind}" for layer in range(config.decoder_layers) for kind in decoder
    ]
    trace = model.trace(sentence(model), target(model))
    assert [attention.name for attention in trace.attention] == names
    assert list(model.attention_names) == names
    assert [trace.find(name).name for name in names] == names
    assert {attention.heads for attention in trace.attention} == {config.heads}


def test_the_check_that_pages_show_is_small(trace: Trace) -> None:
    assert 0 <= trace.check() < NEAR


def test_the_check_that_pages_show_notices_a_wrong_number() -> None:
    trace = loaded("gpt").trace("the cat saw the dog", record="full")
    attention, norm = trace.attention[0], trace.norms[0]
    for record, field in ((attention, "output"), (norm, "mean"), (norm, "recorded")):
        wrong = getattr(record, field).copy()
        wrong.flat[3] += 0.01
        values = {name: getattr(record, name) for name in record.__dataclass_fields__}
        assert type(record)(**{**values, field: wrong}).check() > 1e-3


def test_heads_may_have_masks_of_their_own() -> None:
    attention = loaded("gpt").trace("the cat saw the dog").attention[0]
    masks = np.random.default_rng(0).random((attention.heads, 5, 5)) > 0.5
    own = replace(attention, own_mask=masks, look_ahead=False)
    for head, mask in enumerate(masks):
        shared = replace(attention, own_mask=mask, look_ahead=False)
        np.testing.assert_array_equal(own.masked(head), shared.masked(head))
        np.testing.assert_array_equal(own.weights(head) > 0, mask)
    exact = np.stack([own.context(head) for head in range(own.heads)])
    assert replace(own, output=exact).check() < NEAR < own.check()
