"""What the sub-layers add: together the whole stream, and each one what its own maps write."""

from dataclasses import replace

import numpy as np
import pytest

from model import Model, Trace
from model.analysis.stream.stream import (
    Contribution,
    contribution_check,
    contributions,
    lengths,
    norm_reads,
    written,
)
from model.nn.config import Stack
from model.trace.arrays import read_only
from tests.cases import cases
from tests.model.tiny import loaded, sentence


def parts(model: Model, trace: Trace, stack: Stack) -> tuple[Contribution, ...]:
    return contributions(model, trace, stack)


def test_pre_norm_contributions_sum_to_the_whole_and_post_norms_read_each_sum(
    model: Model, trace: Trace
) -> None:
    norms = {norm.name: norm for norm in trace.norms}
    for stack in model.stacks():
        states, given = trace.residual[stack], parts(model, trace, stack)
        if model.config.norm_place == "pre":
            total = states[0] + sum(part.added for part in given)
            np.testing.assert_allclose(total, states[-1], atol=1e-4)
            continue
        for part, after in zip(given, states[1:], strict=True):
            norm = norms[f"{part.name}.norm"]
            np.testing.assert_allclose(part.before + part.added, norm.input, atol=1e-5)
            np.testing.assert_allclose(norm.output, after, atol=1e-5)


def test_every_sublayer_of_every_stack_has_its_contribution(model: Model, trace: Trace) -> None:
    names = [part.name for stack in model.stacks() for part in parts(model, trace, stack)]
    attention = [name for name in names if not name.endswith("feed_forward")]
    hidden = [name for name in names if name.endswith("feed_forward")]
    assert sorted(attention) == sorted(model.attention_names)
    assert sorted(hidden) == sorted(record.name for record in trace.feed_forward)
    assert len(set(names)) == len(names)


def test_what_was_added_is_what_the_sublayers_own_maps_write(model: Model, trace: Trace) -> None:
    for stack in model.stacks():
        assert contribution_check(model, trace, parts(model, trace, stack)) < 1e-4


@cases("name", ["gpt", "bert"])
def test_a_contribution_that_is_wrong_is_seen(name) -> None:
    model = loaded(name)
    trace = model.trace(sentence(model), record="full")
    right = parts(model, trace, trace.source)
    for number, part in enumerate(right):
        wrong = replace(part)
        vars(wrong)["added"] = part.added * np.float32(1.1)
        planted = (*right[:number], wrong, *right[number + 1 :])
        assert contribution_check(model, trace, planted) > 1e-2


def test_an_ablated_head_writes_nothing() -> None:
    model = loaded("gpt")
    trace = model.trace(sentence(model), record="full")
    attention = replace(trace.attention[0], ablated=(0, 1, 2))
    silent = replace(trace, attention=(attention, *trace.attention[1:]))
    layer = model.module.attentions()[0]
    only_bias = np.tile(layer.output.bias.detach().cpu().numpy(), (len(trace.tokens), 1))
    np.testing.assert_allclose(written(model, silent, attention.name), only_bias, atol=1e-6)


def test_activations_that_were_not_recorded_are_refused_in_a_sentence() -> None:
    model = loaded("gpt")
    with pytest.raises(ValueError, match="not recorded in full"):
        written(model, model.trace(sentence(model)), "decoder.0.feed_forward")


def test_a_length_is_euclidean() -> None:
    np.testing.assert_allclose(lengths(read_only(np.array([[3.0, 4.0], [0.0, 0.0]]))), [5, 0])


def test_every_norm_reads_what_its_place_in_the_block_says(model: Model, trace: Trace) -> None:
    for norm in trace.norms:
        np.testing.assert_allclose(
            norm_reads(model, trace, norm.name), norm.input, atol=1e-4, err_msg=norm.name
        )
