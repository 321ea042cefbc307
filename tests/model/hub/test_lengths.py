"""Lengths that a config names: on both sides of each, with and without a cache, numbers are the library's."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import Tensor

import model.hub.attention
from model import Model, load_model
from model.hub.attention import KeptLayer
from model.hub.lengths import CROSSED, named_lengths, run
from model.loading.in_memory import opened
from model.nn.recorder import Recorder, recording
from model.system import deadline
from tests.model.hub_families import _LLAMA, FAMILIES, GROUPED, INDEXED, ODD, PARTLY, VOCABULARY
from tests.model.hub_models import build, loaded, save

LENGTH = 20  # of each, in tokens: beyond a short sentence
BEYOND = CROSSED + 6  # the check at load does not cross it
KINDS = ["sliding_attention", "sliding_attention", "full_attention"]
LONG = {"long_factor": [2.0, 4.0, 8.0, 16.0], "short_factor": [1.0] * 4}


def rotated(kind: str, length: int, **more: object) -> dict[str, Any]:
    named = {
        "rope_type": kind,
        "rope_theta": 1e4,
        "original_max_position_embeddings": length,
        **more,
    }
    return {**GROUPED, "original_max_position_embeddings": length, "rope_parameters": named}


def families(length: int) -> dict[str, tuple[str, dict[str, Any]]]:
    """Class and config of models that name this length."""
    windowed = {**GROUPED, "sliding_window": length}
    mixed = {**windowed, "head_dim": 8, "layer_types": KINDS}
    llama4 = {
        "head_dim": 8, "intermediate_size_mlp": 80, "num_local_experts": 4, "num_experts_per_tok": 1,
        "attention_chunk_size": length, "floor_scale": length, "no_rope_layers": [1, 1, 0],
        "interleave_moe_layer_step": 1,
    }  # fmt: skip
    named: dict[str, tuple[str, dict[str, Any]]] = {
        "mistral": ("MistralForCausalLM", windowed),
        "starcoder2": ("Starcoder2ForCausalLM", windowed),
        "qwen2": (
            "Qwen2ForCausalLM",
            {**windowed, "use_sliding_window": True, "max_window_layers": 1},
        ),
        "gemma2": ("Gemma2ForCausalLM", {**windowed, "head_dim": 16}),
        "gemma3": ("Gemma3ForCausalLM", {**mixed, "head_dim": 16}),
        "gemma3n": ("Gemma3nForCausalLM", {**ODD["gemma3n"][2], "sliding_window": length}),
        "cohere2": ("Cohere2ForCausalLM", mixed),
        "exaone4": ("Exaone4ForCausalLM", mixed),
        "olmo3": ("Olmo3ForCausalLM", mixed),
        "gpt_oss": ("GptOssForCausalLM", {**PARTLY["gpt_oss"][2], "sliding_window": length}),
        "gpt_neo": ("GPTNeoForCausalLM", {**FAMILIES["gpt_neo"][2], "window_size": length}),
        "llama4": ("Llama4ForCausalLM", {**GROUPED, **llama4}),
        "phi3": ("Phi3ForCausalLM", rotated("longrope", length, **LONG)),
        "yarn": ("LlamaForCausalLM", rotated("yarn", length, factor=4.0)),
        "dynamic": ("LlamaForCausalLM", rotated("dynamic", length, factor=2.0)),
        "deepseek_v32": ("DeepseekV32ForCausalLM", {**INDEXED, "index_topk": length}),
        "glm_moe_dsa": ("GlmMoeDsaForCausalLM", {**INDEXED, "index_topk": length}),
        "modernbert": (
            "ModernBertModel",
            {**FAMILIES["modernbert"][2], "local_attention": 2 * length},
        ),
        "embedding": ("Gemma3TextModel", {**mixed, "use_bidirectional_attention": True}),
    }
    return {
        name: (kind, {**choices, "max_position_embeddings": 2 * CROSSED})
        for name, (kind, choices) in named.items()
    }


NAMES = sorted(families(LENGTH))


def made(name: str, length: int) -> Any:
    kind, choices = families(length)[name]
    settings = getattr(transformers, kind).config_class.__name__
    return build(kind, settings, {**choices, "attn_implementation": "eager"})


def ids_of(length: int) -> list[int]:
    return [(7 * place + place // 3) % VOCABULARY for place in range(1, length + 1)]


def written(ids: Sequence[int]) -> str:
    return " ".join(map(str, ids))


def cached(ours: Model, ids: Sequence[int]) -> Tensor:
    """(V,): the logits after the last token, of which the latter half was read one by one."""
    cache, half = ours.module.new_cache(), len(ids) // 2
    with torch.inference_mode():
        for read in (ids[:half], *([one] for one in ids[half:])):
            with recording(Recorder(cache=cache)):
                logits: Tensor = ours.module(torch.tensor([read]))[0, -1]
    return logits


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("length", [4, LENGTH, BEYOND])
def test_on_both_sides_of_a_length_numbers_are_the_librarys_own(name: str, length: int) -> None:
    body = made(name, length)
    ours = opened(body, None)
    for tokens in (length - 1, length, length + 1, length + 9):
        ids = ids_of(tokens)
        with torch.inference_mode():
            theirs = body(torch.tensor([ids]), output_attentions=True)
        trace = ours.trace(written(ids))
        for own, weights in zip(trace.attention, theirs.attentions, strict=True):
            np.testing.assert_allclose(own.weights(), weights[0], atol=3e-5)
        if ours.config.shape == "encoder":
            with torch.inference_mode():
                states = ours.module(torch.tensor([ids]))
            np.testing.assert_allclose(states, theirs.last_hidden_state, atol=1e-4)
            continue
        assert trace.logits is not None
        expected = theirs.logits[0]
        room = 1e-4 * float(expected.abs().max())
        np.testing.assert_allclose(trace.logits, expected, atol=room)
        if "indexer" not in str(body):
            np.testing.assert_allclose(cached(ours, ids), expected[-1], atol=room)
        else:
            with pytest.raises(ValueError, match="keep something else"):
                cached(ours, ids)


def test_the_length_changes_the_numbers() -> None:
    """So each of the cases above is on two sides of something."""
    for name in NAMES:
        ids = torch.tensor([ids_of(LENGTH + 9)])
        with torch.inference_mode():
            short, long = (made(name, length)(ids)[0] for length in (LENGTH, BEYOND))
        same = name in ("yarn", "dynamic")  # these turn by their factor, and by the context
        assert same or float((short - long).abs().max()) > 1e-3, name


def test_lengths_are_found_by_what_they_are_called() -> None:
    found = {name: named_lengths(made(name, BEYOND).config.to_dict()) for name in NAMES}
    for name, lengths in found.items():
        assert {BEYOND, BEYOND // 2, 2 * BEYOND} & {*lengths.values()}, name
        assert (
            not {"vocab_size", "hidden_size", "num_hidden_layers", "index_head_dim"}
            & lengths.keys()
        )


def test_a_longer_text_that_differs_is_refused_when_it_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Here the choice of the indexer gets lost: up to its length nothing is wrong."""
    monkeypatch.setattr(model.hub.attention, "_chosen", lambda indices, mask, *sizes, **named: mask)
    ours = opened(made("deepseek_v32", BEYOND), None)
    assert len(ours.trace(written(ids_of(BEYOND))).tokens) == BEYOND
    with pytest.raises(ValueError, match=f"index_topk = {BEYOND}"):
        ours.trace(written(ids_of(BEYOND + 1)))
    assert len(ours.trace(written(ids_of(BEYOND))).tokens) == BEYOND
    with pytest.raises(ValueError, match=r"weights .* differ"):
        opened(made("deepseek_v32", LENGTH), None)  # crossed at load


def test_a_cache_that_differs_beyond_a_length_is_refused_when_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Here a full window keeps half of its keys."""
    drop = KeptLayer.drop

    def drops_more(self: KeptLayer, eviction: Any) -> None:
        drop(self, eviction)
        if self.seen >= BEYOND and self.keys is not None and self.values is not None:
            half = len(self.positions) // 2
            self.keys, self.values = self.keys[..., half:, :], self.values[..., half:, :]
            self.positions = self.positions[half:]

    monkeypatch.setattr(KeptLayer, "drop", drops_more)
    ours = opened(made("mistral", BEYOND), None)
    cached(ours, ids_of(CROSSED))
    with pytest.raises(ValueError, match="one by one"):
        cached(ours, ids_of(BEYOND + 4))


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_a_model_that_keeps_nothing_between_passes_has_no_cache(precision: torch.dtype) -> None:
    """GPT of 2018 takes a cache and does not use it."""
    kind, settings, choices = PARTLY["openai-gpt"][:3]
    ours = opened(build(kind, settings, choices).to(precision), None)
    assert {one.place.kind for one in ours.module.attentions()} == {"causal"}
    with pytest.raises(ValueError, match="keeps nothing"):
        cached(ours, ids_of(8))


def test_a_tensor_that_attention_reads_and_this_app_does_not_know_is_refused() -> None:
    class Told(transformers.models.llama.modeling_llama.LlamaAttention):
        def forward(self, *read: Any, **named: Any) -> Any:
            return super().forward(*read, **named, blocks=torch.ones(1))

    body = made("mistral", LENGTH)
    told = build("LlamaForCausalLM", "LlamaConfig", GROUPED)
    for layer in told.model.layers:
        layer.self_attn.__class__ = Told
    assert opened(body, None).attention_names
    with pytest.raises(ValueError, match="'blocks'"):
        opened(told, None)


BOTH_WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "embedding": families(LENGTH)["embedding"],
    "embedding with a head": ("Gemma3ForCausalLM", families(LENGTH)["embedding"][1]),
    "llama": ("LlamaForCausalLM", {**GROUPED, "is_causal": False}),
    "bert": ("BertLMHeadModel", {**_LLAMA, "is_decoder": False}),
    "xlnet": (ODD["xlnet"][0], ODD["xlnet"][2]),
}


@pytest.mark.parametrize("name", BOTH_WAYS)
def test_a_model_whose_tokens_read_later_ones_is_an_encoder(name: str, tmp_path: Path) -> None:
    kind, choices = BOTH_WAYS[name]
    body = build(kind, getattr(transformers, kind).config_class.__name__, choices)
    for ours in (
        opened(body, None),
        load_model(str(save(tmp_path, body, adds=False)), device="cpu"),
    ):
        assert ours.config.shape == "encoder"
        with torch.inference_mode():
            expected = body.base_model(torch.tensor([[5, 6, 7, 8]])).last_hidden_state[0]
            states = ours.module(torch.tensor([[5, 6, 7, 8]]))[0]
        np.testing.assert_allclose(states, expected, atol=1e-5)
        with pytest.raises(ValueError, match="read later ones"):
            ours.module.new_cache()
        with pytest.raises(ValueError, match="is an encoder"):
            ours.generate("5 6" if ours.name == type(body).__name__ else "the cat")


def test_a_model_whose_tokens_look_back_only_is_a_decoder_whatever_its_class_is_called() -> None:
    body = build("BertModel", "BertConfig", {**_LLAMA, "is_decoder": True})
    ours = opened(body, None)
    assert (ours.config.shape, ours.config.masks_future) == ("decoder", True)
    assert "logits" in ours.unproven


@pytest.mark.parametrize("family", ["llama", "gpt2", "bart"])
def test_a_comparison_with_the_library_lets_others_by_before_each_layer(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = loaded(family)
    looks: list[int] = [0]
    of_each: list[int] = []

    def let_by() -> float:
        looks[0] += 1
        return 0.0

    def counted(*given: Any, **named: Any) -> Any:
        before, made = looks[0], run(*given, **named)
        of_each.append(looks[0] - before)
        return made

    monkeypatch.setattr("model.hub.lengths.run", counted)
    monkeypatch.setattr(model.module._lengths, "_held", (1, 1))
    with deadline.within(60.0, lambda: None, let_by):
        model.module._lengths.hold(8, 8 if len(model.stacks()) > 1 else 1)
    assert len(of_each) == 2  # the library's, then ours
    config = model.config
    assert min(of_each) >= config.encoder_layers + config.decoder_layers > 1
