"""A stage of a hub model switched off is the library's own model with that stage taken out."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model import Intervention, load_model
from model.analysis.tokens.live_writing import Choice, live_writing, log_probabilities_of
from model.analysis.tokens.prediction import Sampling
from model.nn.key_value_cache import Eviction
from tests.cases import cases
from tests.model.hub_models import FAMILIES, build, eager, eager_weights, loaded, save, traced


def uncapped(stock: Any) -> None:
    for layer in stock.model.layers:
        layer.self_attn.attn_logit_softcapping = None


def without_sinks(stock: Any) -> None:
    """A sink of −10³⁰ takes nothing of a row."""
    for layer in stock.model.layers:
        layer.self_attn.sinks.data.fill_(-1e30)


def without_biases(stock: Any) -> None:
    for stack in (stock.encoder, stock.decoder):
        table = stack.block[0].layer[0].SelfAttention.relative_attention_bias
        table.weight.data.zero_()


def with_a_window_of_2(stock: Any) -> None:
    stock.config.sliding_window = 2


SWITCHES: dict[str, tuple[Intervention, Callable[[Any], None]]] = {
    "gemma2": (Intervention(cap=False), uncapped),
    "gpt_oss": (Intervention(sinks=False), without_sinks),
    "t5": (Intervention(bias=False), without_biases),
    "mistral": (Intervention(window=2), with_a_window_of_2),
}
STAGES = {"gemma2": "cap", "gpt_oss": "sinks", "t5": "bias", "mistral": "window"}


@cases("family", SWITCHES)
def test_a_switch_gives_the_librarys_model_without_the_stage(family) -> None:
    model = loaded(family)
    intervention, change = SWITCHES[family]
    own, off = traced(model), traced(model, intervention)
    theirs = eager(model, own, change)
    for attention, weights in zip(off.attention, eager_weights(model, theirs), strict=True):
        ours = np.stack([attention.weights(head) for head in range(attention.heads)])
        np.testing.assert_allclose(ours, weights[0].numpy(), atol=1e-5)
    np.testing.assert_allclose(off.logits, theirs.logits[0].numpy(), atol=1e-4)
    moved = np.abs(off.logits - own.logits).max()
    print(f"{family}: logits move by up to {moved:.2g}")
    assert moved > 1e-4
    assert max(own.check(), off.check()) < 1e-4
    stages = [getattr(one, STAGES[family]) for one in own.attention]
    assert any(stage is not None for stage in stages)
    if family != "mistral":
        assert all(getattr(one, STAGES[family]) is None for one in off.attention)


def with_windows_of_100(stock: Any) -> None:
    stock.config.local_attention = 100


def test_windows_that_look_both_ways_are_lifted_with_the_mask() -> None:
    model = loaded("modernbert")
    own, lifted = traced(model), traced(model, Intervention(mask="none"))
    theirs = eager(model, own, with_windows_of_100)
    assert [one.mask is None for one in own.attention] == [True, False, False]
    for attention, weights in zip(lifted.attention, eager_weights(model, theirs), strict=True):
        assert (attention.kind, attention.mask, attention.window) == ("self", None, None)
        for head in range(attention.heads):
            np.testing.assert_allclose(attention.weights(head), weights[0, head], atol=1e-5)
    ended = lifted.residual["encoder"][-1]
    assert np.abs(ended - own.residual["encoder"][-1]).max() > 1e-4
    assert lifted.check() < 1e-4
    only = traced(model, Intervention(mask="none", only=frozenset({"encoder.1.self"})))
    assert [one.mask is None for one in only.attention] == [True, True, False]


@cases("family", ["mistral", "gemma2", "gemma3", "gpt_oss", "modernbert"])
def test_each_layer_is_recorded_with_its_own_window(family) -> None:
    """The text is longer than every window. Layers without one read all that their mask allows."""
    trace = traced(loaded(family))
    length = len(trace.tokens)
    for attention in trace.attention:
        read = length if attention.mask is None else attention.mask.sum(-1).max()
        assert read == (attention.window or length)
    assert any(attention.window for attention in trace.attention)
    if family != "mistral":
        assert not all(attention.window for attention in trace.attention)


def test_chunks_are_recorded_as_the_mask_of_their_layers(tmp_path: Path) -> None:
    """Llama 4: its local layers read chunks, and its rotary positions are complex numbers."""
    kinds = ["chunked_attention", "chunked_attention", "full_attention"]
    choices = {"head_dim": 8, "attention_chunk_size": 4, "layer_types": kinds, "pad_token_id": 0}
    experts = {"num_local_experts": 2, "num_experts_per_tok": 1, "intermediate_size_mlp": 80}
    body = build(
        "Llama4ForCausalLM", "Llama4TextConfig", {**FAMILIES["llama"][2], **choices, **experts}
    )
    model = load_model(str(save(tmp_path, body, adds=False)), device="cpu")
    own, still = traced(model), traced(model, Intervention(positions=False))
    chunk = np.arange(len(own.tokens)) // 4
    for attention, weights in zip(
        own.attention, eager_weights(model, eager(model, own)), strict=True
    ):
        expected = np.tril(np.ones((len(chunk),) * 2, bool))
        if kinds[attention.layer] == "chunked_attention":
            expected &= chunk[:, None] == chunk
        np.testing.assert_array_equal(attention.mask, expected)
        for head in range(attention.heads):
            np.testing.assert_allclose(attention.weights(head), weights[0, head], atol=1e-5)
    assert np.abs(own.logits - still.logits).max() > 1e-3
    assert max(own.check(), still.check()) < 1e-4
    tokens, greedy = model.tokens(own.text), Choice(Sampling())
    *_, found = live_writing(model, tokens, greedy, steps=5, eviction=Eviction())
    at_once = log_probabilities_of(model, tokens, found.ids, Eviction())
    by_step = [step.log_probability for step in found.steps]
    np.testing.assert_allclose(at_once, by_step, atol=1e-4)
    with pytest.raises(ValueError, match="no key can be dropped"):
        next(live_writing(model, tokens, greedy, steps=5, eviction=Eviction(3)))
