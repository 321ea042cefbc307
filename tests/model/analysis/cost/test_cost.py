"""Shapes, parameters and operations counted from sizes, held against tensors that really ran."""

import warnings
from dataclasses import replace
from itertools import product
from math import prod

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from model import Model, Trace
from model.analysis.cost.cost import (
    flops_by_part,
    growth,
    key_value_cache,
    memory,
    total_flops,
    total_results,
)
from model.analysis.cost.operations import (
    Lengths,
    compared,
    lengths_of,
    operations,
    recorded_shapes,
)
from model.arithmetic.sizes import attention_costs, parameter_parts, shape_walk
from model.nn.config import TransformerConfig
from model.nn.recorder import Recorder, recording
from model.nn.transformer import Transformer
from tests.cases import cases
from tests.model.tiny import MODELS, TINY, is_product, loaded

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from transformers import GPT2Config, GPT2LMHeadModel

GPT2 = TransformerConfig("decoder", 50_257, 1_024, 768, 12, decoder_layers=12, d_mlp=3_072)


def without(config: TransformerConfig, **changes: object) -> TransformerConfig:
    return replace(config, **changes)  # type: ignore[arg-type]


@cases("name", MODELS)
def test_parameters_are_as_many_as_the_module_has(name) -> None:
    module = loaded(name).module
    counted = parameter_parts(module.config)
    assert sum(counted.values()) == sum(weight.numel() for weight in module.parameters())
    assert sum(counted.values()) == loaded(name).parameter_count
    assert min(counted.values()) > 0


@given(st.sampled_from(TINY), st.integers(1, 3), st.integers(1, 3), st.booleans(), st.booleans())
def test_parameters_hold_for_other_sizes(
    name: str, heads: int, layers: int, tied: bool, bias: bool
) -> None:
    config = loaded(name).config
    config = without(
        config,
        d_model=4 * heads,
        heads=heads,
        encoder_layers=layers * bool(config.encoder_layers),
        decoder_layers=layers * bool(config.decoder_layers),
        tied=tied,
        qkv_bias=bias,
    )
    counted = sum(parameter_parts(config).values())
    assert counted == sum(weight.numel() for weight in Transformer(config).parameters())


def test_each_part_is_the_part_of_that_name() -> None:
    module = loaded("bert").module
    counted = parameter_parts(module.config)

    def numbers(*words: str) -> int:
        return sum(
            weight.numel()
            for name, weight in module.named_parameters()
            if any(word in name for word in words)
        )

    for begins, *words in (
        ("Token", "tokens"), ("Segment", "segments"), ("Norm ", "embedding.norm"),
        ("Attention", "self_attention"), ("Feed-", "feed_forward."),
        ("Norms", "self_norm", "feed_forward_norm"),
    ):  # fmt: skip
        assert [counted[part] for part in counted if part.startswith(begins)] == [numbers(*words)]


def test_the_three_counts_of_the_gpt_2_configuration() -> None:
    separate = without(GPT2, tied=False, qkv_bias=False)
    counts = [
        sum(parameter_parts(config).values())
        for config in (separate, without(GPT2, qkv_bias=False), GPT2)
    ]
    assert counts == [163_009_536, 124_412_160, 124_439_808]


@cases("sizes", [{}, {"n_layer": 3, "n_embd": 96, "n_head": 4}])
def test_gpt_2s_count_is_hugging_faces(sizes) -> None:
    torch.manual_seed(0)
    with torch.device("meta"):
        model = GPT2LMHeadModel(GPT2Config(**sizes))
    width = sizes.get("n_embd", 768)
    config = without(GPT2, d_model=width, heads=sizes.get("n_head", 12), d_mlp=4 * width,
                     decoder_layers=sizes.get("n_layer", 12))  # fmt: skip
    assert sum(parameter_parts(config).values()) == model.num_parameters()


@pytest.mark.models(MODELS)
def test_every_shape_is_that_of_the_recorded_array(model: Model, trace: Trace) -> None:
    counted = operations(model.config, lengths_of(trace))
    rows = compared(counted, recorded_shapes(trace))
    assert all(same is not False for _, _, same in rows)
    assert recorded_shapes(trace).keys() <= {step.key for step in counted} | {
        (f"{stack}.embedding", "Plus positions") for stack in trace.residual
    }
    named = {step.name for step, _, same in rows if same}
    heads_first = {f"{name}, heads first" for name in "QKV"}
    assert {"Token vectors", "Norm", *heads_first, "Scores", "Weights", "Context"} <= named


def test_a_wrong_length_shows_in_the_comparison() -> None:
    model = loaded("gpt")
    read = model.trace("the cat saw the cat", record="full")
    wrong = operations(model.config, Lengths(1, len(read.tokens) + 1))
    assert any(same is False for _, _, same in compared(wrong, recorded_shapes(read)))


@cases("batch", [1, 3])
def test_shapes_hold_for_batches_that_run_through_our_modules(batch) -> None:
    module = loaded("gpt").module
    seen: dict[str, tuple[int, ...]] = {}
    hooks = [
        inner.register_forward_hook(
            lambda _, __, output, name=name: seen.update({name: tuple(output.shape)})
        )
        for name, inner in module.named_modules()
    ]
    module(torch.zeros((batch, 7), dtype=torch.long))
    for hook in hooks:
        hook.remove()
    counted = {step.key: step.shape for step in operations(module.config, Lengths(batch, 7))}
    block = "decoder.blocks.0"
    for name, key in {
        "embedding": ("decoder.embedding", "Plus positions"),
        f"{block}.self_norm": ("decoder.self", "Norm"),
        f"{block}.self_attention.query": ("decoder.self", "Q"),
        f"{block}.self_attention.value": ("decoder.self", "K and V"),
        f"{block}.self_attention": ("decoder.self", "After W_O"),
        f"{block}.feed_forward.w_in": ("decoder.feed_forward", "Hidden layer"),
        f"{block}.feed_forward": ("decoder.feed_forward", "Back to the width"),
        "decoder": ("decoder.final", "Final norm"),
        "": ("decoder.output", "Logits"),
    }.items():
        assert seen[name] == counted[key]


@cases("name, lengths", product(TINY, [Lengths(1, 5, 4), Lengths(2, 9, 3), Lengths(3, 1, 1)]))
def test_operations_of_matrix_products_are_those_that_pytorch_counts(name, lengths) -> None:
    module = loaded(name).module
    pair = module.config.shape == "encoder-decoder"
    ids = torch.zeros((lengths.batch, lengths.tokens), dtype=torch.long)
    target = torch.zeros((lengths.batch, lengths.target), dtype=torch.long)
    counter = FlopCounterMode(display=False)
    # The explicit path: PyTorch does not count its fused kernel on every processor.
    with torch.inference_mode(), recording(Recorder(explicit=True)), counter:
        module(ids, target) if pair else module(ids)
    counted = sum(
        step.times * step.flops for step in operations(module.config, lengths) if is_product(step)
    )
    assert counted == counter.get_total_flops()


def test_attention_is_counted_as_the_worked_examples_count_it() -> None:
    config = TransformerConfig("decoder", 10, 16, 512, 8, decoder_layers=1)
    counted = {
        step.name: step
        for step in operations(config, Lengths(32, 16))
        if step.place == "decoder.self"
    }
    names = {
        "Q, K and V": ("Q", "K and V"),
        "Cut into heads": ("Q cut into heads", "K and V cut into heads"),
        "Heads first": ("Q, heads first", "K, heads first", "V, heads first"),
    }
    for stage in shape_walk(32, 16, 512, 8)[1:]:
        for name in names.get(stage.name, (stage.name,)):
            assert counted[name].shape == stage.shape
    for cost in attention_costs(32, 16, 512, 8):
        steps = [counted[name] for name in names.get(cost.name, (cost.name,))]
        assert sum(step.numbers for step in steps) == cost.numbers
        assert sum(step.flops for step in steps) == cost.flops


@given(st.sampled_from(TINY), st.integers(1, 4), st.integers(1, 300))
def test_costs_are_a_square_and_a_line_of_the_length(name: str, batch: int, length: int) -> None:
    config = loaded(name).config
    for cost in (total_flops, total_results):
        found = growth(lambda lengths, cost=cost: cost(config, lengths), batch)
        expected = cost(config, Lengths(batch, length))
        assert found.quadratic * length**2 + found.linear * length == expected


def test_both_parts_are_equal_where_the_curves_cross() -> None:
    found = growth(lambda lengths: total_flops(GPT2, lengths), 1)
    assert found.quadratic * found.crossing**2 == pytest.approx(found.linear * found.crossing)
    # 4·d·L in scores and context, 6·h·L in scaling and softmax; 24·d²·L in the rest, 2·d·V logits
    layers, width = 12, 768
    assert found.quadratic == layers * (4 * width + 6 * 12)
    assert found.linear == layers * 24 * width**2 + 2 * width * 50_257


def test_twice_the_length_takes_four_times_the_matrices_and_twice_the_cache() -> None:
    short, long = memory(GPT2, Lengths(2, 100)), memory(GPT2, Lengths(2, 200))
    assert long.matrices == 4 * short.matrices
    assert long.cache == 2 * short.cache
    assert long.activations == 2 * short.activations
    assert long.weights == short.weights == 124_439_808
    assert short.matrices == 3 * 12 * 2 * 12 * 100 * 100


@pytest.mark.models(TINY)
def test_the_cache_holds_every_key_and_value_of_the_decoder(model: Model, trace: Trace) -> None:
    recorded = sum(
        attention.key.size + attention.value.size
        for attention in trace.attention
        if attention.stack == "decoder"
    )
    assert key_value_cache(model.config, lengths_of(trace)) == recorded


def test_parts_add_up_and_each_number_is_kept_once() -> None:
    lengths = Lengths(2, 10)
    assert sum(flops_by_part(GPT2, lengths).values()) == total_flops(GPT2, lengths)
    for step in operations(GPT2, lengths):
        assert step.numbers in (0, prod(step.shape), 2 * prod(step.shape))
        assert len(step.axes) == len(step.shape)
    assert np.array([step.times for step in operations(GPT2, lengths)]).max() == 12


@cases("sizes", [(0, 5), (1, 0), (1, 5, -1)])
def test_lengths_below_one_are_refused(sizes) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        Lengths(*sizes)


@cases("name, scaled, weights", [
    ("all-stages", "scores / √dₖ, capped, biases added, masked",
        "softmax of each row, with its sink"),
    ("distance-buckets", "scores, not divided, biases added", "softmax of each row"),
    ("stories", "scores / √dₖ, masked", "softmax of each row"),
])  # fmt: skip
def test_the_stages_of_a_model_are_told_and_no_others(name, scaled, weights) -> None:
    told = [step.formula for step in operations(loaded(name).config, Lengths(1, 7))]
    assert scaled in told
    assert weights in told
