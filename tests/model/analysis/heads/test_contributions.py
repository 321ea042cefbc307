"""Heads and bias add up to what attention gives the stream, and all parts to the logit."""

from dataclasses import replace

import numpy as np
import pytest

from model import Intervention, Model, Trace
from model.analysis.heads.contributions import (
    head_results,
    logit_check,
    output_bias,
    parts_of_logit,
    result_lengths,
    results_check,
)
from tests.cases import cases
from tests.model.tiny import loaded, of_shape, run, sentence

PREDICTING = of_shape("decoder", "encoder-decoder")


def test_the_heads_and_the_bias_sum_to_what_the_sublayer_gives_the_stream(
    model: Model, trace: Trace
) -> None:
    for attention in trace.attention:
        assert results_check(model, trace, attention.name) < 1e-4


def test_a_head_result_that_is_left_out_is_seen_by_the_check() -> None:
    model = loaded("gpt")
    trace = model.trace(sentence(model))
    lost = replace(trace.attention[0], ablated=(1,))
    wrong = replace(trace, attention=(lost, *trace.attention[1:]))
    assert results_check(model, wrong, lost.name) > 1e-2


@pytest.mark.models(PREDICTING)
def test_all_parts_of_a_logit_sum_to_the_models_own(model: Model) -> None:
    trace = run(model)
    length = len(trace.tokens_of("decoder"))
    for position, token in ((length - 1, int(trace.logits[-1].argmax())), (1, 3)):
        parts = parts_of_logit(model, trace, position, token)
        assert logit_check(trace, parts, position, token) < 1e-4
        heads = [(part.name, part.head) for part in parts if part.kind == "head"]
        own = [one for one in trace.attention if one.stack == "decoder"]
        assert sorted(heads) == sorted((one.name, h) for one in own for h in range(one.heads))
        planted = (replace(parts[0], effect=parts[0].effect + 0.5), *parts[1:])
        assert logit_check(trace, planted, position, token) > 0.4


@cases("name", ["gpt", "translator"])
def test_an_ablated_head_writes_nothing_and_the_parts_still_add_up(name) -> None:
    model = loaded(name)
    trace = run(model, Intervention(ablated=frozenset({("decoder.0.self", 2)})))
    assert (head_results(model, trace.find("decoder.0.self"))[2] == 0).all()
    parts = parts_of_logit(model, trace, 2, 4)
    assert logit_check(trace, parts, 2, 4) < 1e-4
    (silent,) = [one for one in parts if (one.name, one.head) == ("decoder.0.self", 2)]
    assert silent.length == silent.effect == 0


def test_lengths_are_those_of_the_written_vectors_and_a_missing_bias_adds_nothing() -> None:
    model = loaded("llama")
    attention = run(model).attention[0]
    result = head_results(model, attention)
    np.testing.assert_allclose(
        result_lengths(model, attention), np.sqrt((result**2).sum(-1)), rtol=1e-5
    )
    assert (output_bias(model, attention.name) == 0).all()


def test_an_encoder_has_no_logit_to_take_apart() -> None:
    model = loaded("bert")
    with pytest.raises(ValueError, match="predicts no next token"):
        parts_of_logit(model, run(model), 0, 0)
