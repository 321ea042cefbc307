"""The names under which TransformerLens' bridge and nnsight keep numbers today; what they mean there."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from model.exchange import read
from model.exchange.layers import _NO_MASK, _NO_VECTORS
from model.trace.partial import PartialAttention
from tests.model import hub_models
from tests.model.exchange.test_exchange import parted_at, transformer_lens_cache
from tests.model.tiny import loaded, run


def test_a_cache_of_a_bridge_is_read_by_its_own_names() -> None:
    """`hook_aliases` of transformer_lens.model_bridge: some have other names, and some are None."""
    names = {"attn.hook_q": "attn.q.hook_out", "attn.hook_k": "attn.k.hook_out",
             "attn.hook_v": "attn.v.hook_out", "attn.hook_z": "attn.o.hook_in",
             "hook_resid_pre": "hook_in", "hook_resid_mid": "ln2.hook_in",
             "hook_resid_post": "hook_out"}  # fmt: skip
    trace = run(loaded("gpt"))
    cache: dict[str, Any] = {"blocks.0.attn.hook_attn_in": None}
    for name, array in transformer_lens_cache(trace).items():
        hook = name.removeprefix(".".join(name.split(".")[:2]) + ".")
        cache[name.removesuffix(hook) + names.get(hook, hook)] = array
    states = trace.residual["decoder"]
    for layer in range(len(trace.attention)):  # what says that a state is one after attention
        wrote = states[2 * layer + 1] - states[2 * layer]
        cache[f"blocks.{layer}.attn.hook_out"] = torch.tensor(wrote)[None]
    other = read(cache)
    np.testing.assert_array_equal(other.streams["decoder"], trace.streams["decoder"])
    assert parted_at(trace, other) is None
    flat = cache["blocks.0.attn.o.hook_in"].flatten(2)  # as where no heads are cut
    assert read(cache | {"blocks.0.attn.o.hook_in": flat}).attention[0].doubt == ""


def test_what_a_bridge_calls_otherwise_is_not_taken_for_it(subtests: pytest.Subtests) -> None:
    """As measured with TransformerLens 4.3: of OPT and BERT it keeps weights as scores, of NeoX queries from
    before their positions and one state that attention and feed-forward read, of Gemma uncapped logits."""
    trace = run(loaded("gpt"))
    cache = transformer_lens_cache(trace)
    patterns = {name: array for name, array in cache.items() if name.endswith("hook_pattern")}
    with subtests.test("weights as scores"):
        (one, *_) = read(
            cache | {name.replace("pattern", "attn_scores"): a for name, a in patterns.items()}
        ).attention
        assert (one.kind, one.doubt) == ("causal", "")
        np.testing.assert_allclose(one.masked(0), trace.attention[0].masked(0), atol=1e-5)
    with subtests.test("queries from before their positions"):
        bare = {
            name: array for name, array in cache.items() if "hook_q" in name or "hook_k" in name
        }
        with pytest.raises(ValueError, match="hook_pattern"):
            read(bare | {"rotary_emb.hook_cos": torch.ones(1, 3, 4)})
        (one, *_) = read(bare | patterns | {"rotary_emb.hook_cos": torch.ones(1, 3, 4)}).attention
        assert isinstance(one, PartialAttention)
        assert {"query", "key"} <= {*one.absent}
    with subtests.test("one state for both"):
        pre = [name for name in cache if name.endswith("hook_resid_pre")]
        same = {name.replace("hook_resid_pre", "ln2.hook_in"): cache[name] for name in pre}
        wrote = {name.replace("hook_resid_pre", "attn.hook_out"): cache[name] for name in pre}
        middles = [name for name in cache if name.endswith("hook_resid_mid")]
        parallel = {name: array for name, array in cache.items() if name not in middles}
        for given in (parallel | same, parallel | same | wrote):
            states = read(given).residual["decoder"]
            assert len(states) == len(trace.attention) + 1
    with subtests.test("logits"):
        logits = torch.rand(1, len(trace.tokens), 5)
        assert read(cache | {"unembed.hook_out": logits}).logits is None
        np.testing.assert_array_equal(read(cache | {"logits": logits}).logits, logits[0])


def test_values_of_nnsight_are_read_by_their_paths() -> None:
    """docs/patterns/attention-patterns.md and docs/usage/cache.md of nnsight."""
    model = hub_models.loaded("gpt2")
    trace = hub_models.traced(model)
    saved: dict[str, Any] = {}
    for layer, one in enumerate(trace.attention):
        path = f"model.transformer.h[{layer}].attn"
        weights = torch.tensor(one.weights())[None]
        saved[f"{path}.source.attention_interface_0.output"] = (torch.zeros(1, 11, 48), weights)
        flat = [torch.tensor(v).transpose(0, 1).flatten(1) for v in one.vectors]
        saved[f"{path}.c_attn"] = SimpleNamespace(output=torch.cat(flat, -1)[None])
        saved[f"model.transformer.h[{layer}].mlp"] = torch.zeros(1, 11, 48)
    again = read(saved)
    for ours, theirs in zip(trace.attention, again.attention, strict=True):
        assert theirs.module == f"model.transformer.h.{theirs.layer}.attn"
        for vectors, others in zip(ours.vectors, theirs.vectors, strict=True):
            np.testing.assert_array_equal(others, vectors)
    assert parted_at(trace, again) is None


def test_maps_that_nnsight_saved_are_read_where_they_give_the_weights(
    subtests: pytest.Subtests,
) -> None:
    """`tracer.cache()` of nnsight 0.8 is no mapping: it has keys, and entries with an output."""

    class View:
        def __init__(self, saved: dict[str, Any]) -> None:
            self._saved = saved

        def keys(self) -> list[str]:
            return list(self._saved)

        def __getitem__(self, name: str) -> Any:
            return SimpleNamespace(output=self._saved[name])

    trace = run(loaded("gpt"))
    one = trace.attention[0]
    flat = [part.transpose(1, 0, 2).reshape(part.shape[1], -1) for part in one.vectors]
    side = torch.tensor(np.concatenate(flat, -1))[None]
    by_head = torch.tensor(np.stack(one.vectors).transpose(2, 1, 0, 3).reshape(side.shape))
    weights = (torch.zeros(1, 3, 4), torch.tensor(one.weights().copy())[None])
    for path, fused in (
        ("model.transformer.h.0.attn.c_attn", side),
        ("model.layers.0.self_attn.qkv_proj", side),
        ("gpt_neox.layers.0.attention.query_key_value", by_head),
    ):
        with subtests.test(path=path):
            (read_one,) = read(View({path: fused, path.rpartition(".")[0]: weights})).attention
            assert read_one.doubt == ""
            np.testing.assert_allclose(read_one.value, one.value, atol=1e-6)
            (turned,) = read({path: -fused.flip(1), path.rpartition(".")[0]: weights}).attention
            assert turned.doubt == ("" if "c_attn" not in path else _NO_VECTORS)
            np.testing.assert_allclose(turned.weights(), one.weights(), atol=1e-6)
    with subtests.test("alone"):
        alone = {"transformer.h.0.attn.c_attn": side}
        (read_one,) = read(alone, heads=one.heads).attention
        assert read_one.doubt == _NO_MASK
        np.testing.assert_allclose(read_one.weights(), one.weights(), atol=1e-6)
        with pytest.raises(ValueError, match="give heads"):
            read(alone)
        for name in ("q_proj", "qkv_proj"):
            with pytest.raises(ValueError, match="eager"):
                read({f"model.layers.0.self_attn.{name}": side}, heads=one.heads)
