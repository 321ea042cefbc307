"""Shapes, parameters and operations of models of the hub, held against what their own modules do."""

from math import prod

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from model import Model
from model.analysis.cost.cost import key_value_cache
from model.analysis.cost.operations import (
    Lengths,
    compared,
    lengths_of,
    operations,
    recorded_shapes,
)
from model.arithmetic.sizes import parameter_parts, parameters_read
from model.nn.recorder import Recorder, recording
from tests.cases import cases
from tests.model import hub_models
from tests.model.tiny import is_product

GROUPED = ("llama", "mistral", "qwen2", "qwen3", "gemma")
EXPERTS = ("mixtral", "qwen3_moe", "gpt_oss", "deepseek_v3")
FAMILIES = (*GROUPED, "distilbert", "bart", "marian", "gpt_neox", *EXPERTS)


def products(model: Model, lengths: Lengths) -> int:
    """Operations of matrix products that PyTorch counts in one pass, but for those of the angles."""
    ids = torch.full((1, lengths.tokens), 5)
    given = (ids, torch.full((1, lengths.target), 5)) if lengths.target else (ids,)
    counter = FlopCounterMode(display=False)
    with torch.inference_mode(), recording(Recorder(explicit=True)), counter:
        model.module(*given)
    angles = [
        sum(counts.values())
        for name, counts in counter.get_flop_counts().items()
        if name.endswith("rotary_emb")
    ]
    return counter.get_total_flops() - sum(angles)


def counted_products(model: Model, lengths: Lengths) -> int:
    steps = operations(model.config, lengths)
    return sum(step.times * step.flops for step in steps if is_product(step))


@pytest.fixture(autouse=True)
def one_expert_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch counts no product of groups."""
    for family in EXPERTS:
        body = hub_models.loaded(family).module.body
        monkeypatch.setattr(body.config, "_experts_implementation_internal", "eager")


@cases("family", FAMILIES)
def test_operations_of_hub_models_are_those_that_pytorch_counts(family) -> None:
    model = hub_models.loaded(family)
    lengths = Lengths(1, 9, 5 if model.config.shape == "encoder-decoder" else 0)
    assert counted_products(model, lengths) == products(model, lengths)


@cases("family", FAMILIES)
def test_shapes_of_hub_models_are_those_of_the_recorded_arrays(family) -> None:
    model = hub_models.loaded(family)
    trace = hub_models.traced(model, record="full")
    rows = compared(operations(model.config, lengths_of(trace)), recorded_shapes(trace))
    assert [step.key for step, _, same in rows if same is False] == []
    same = {step.name for step, _, same in rows if same}
    assert {f"{name}, heads first" for name in "QKV"} <= same


@cases("family", GROUPED)
def test_keys_and_values_are_as_wide_as_their_real_projections(family) -> None:
    model = hub_models.loaded(family)
    attention = next(
        part
        for part in model.module.modules()
        if hasattr(part, "k_proj") and hasattr(part, "q_proj")
    )
    seen: dict[str, tuple[int, ...]] = {}
    hooks = [
        getattr(attention, f"{letter}_proj").register_forward_hook(
            lambda _, __, gave, letter=letter: seen.update({letter: tuple(gave.shape)})
        )
        for letter in "qkv"
    ]
    trace = model.trace(hub_models.TEXT)
    for hook in hooks:
        hook.remove()
    counted = {step.key: step for step in operations(model.config, lengths_of(trace))}
    both = counted["decoder.self", "K and V"]
    assert counted["decoder.self", "Q"].shape == seen["q"]
    assert both.shape == seen["k"] == seen["v"] != seen["q"]
    assert both.numbers == prod(seen["k"]) + prod(seen["v"])


@cases("family", EXPERTS)
def test_a_token_meets_the_parameters_of_the_experts_that_read_it(family) -> None:
    """Counted by leaving out the weights of the experts that the router did not choose for one token."""
    model = hub_models.loaded(family)
    trace = hub_models.traced(model, record="full")
    stacked = [one for one in model.module.body.modules() if hasattr(one, "gate_up_proj")]
    unread = 0
    for module, record in zip(stacked, trace.experts, strict=True):
        others = [n for n in range(model.config.experts) if n not in record.chosen[0]]
        unread += sum(weight[others].numel() for weight in module.parameters())
    assert unread > 0
    assert parameters_read(model.config) == sum(parameter_parts(model.config).values()) - unread
    assert sum(parameter_parts(model.config).values()) == model.parameter_count


@cases("family", [name for name in FAMILIES if name != "deepseek_v3"])
def test_the_cache_of_hub_models_is_what_the_library_keeps(family) -> None:
    model = hub_models.loaded(family)
    trace = hub_models.traced(model)
    kept = sum(
        record.vectors[1].size + record.vectors[2].size
        for record in trace.attention
        if record.stack == "decoder"
    )
    assert key_value_cache(model.config, lengths_of(trace)) == kept


def test_the_cache_of_latent_attention_is_what_the_running_model_keeps() -> None:
    model = hub_models.loaded("deepseek_v3")
    tokens, cache = model.tokens(hub_models.TEXT), model.module.new_cache()
    with recording(Recorder(cache=cache)), torch.inference_mode():
        model.module(model.ids(tokens))
    kept = sum(one.key.numel() + one.value.numel() for one in cache.kept.values())
    assert key_value_cache(model.config, Lengths(1, len(tokens))) == kept
