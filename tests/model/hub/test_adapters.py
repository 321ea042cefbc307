"""Attention that modules compute themselves, through our `attend`: the library's own numbers."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import T5Config

from model.hub.attention import NAME, register
from model.hub.config import context_of
from model.hub.inline_attention import adapt, lead_inline, reference_mended
from model.hub.twin import set_attention
from model.nn.intervention import Intervention
from model.nn.recorder import Recorder, recording
from tests.cases import cases
from tests.model.hub_families import FAMILIES, VOCABULARY
from tests.model.hub_models import build, loaded

IDS = torch.arange(4, 4 + 11)[None] % VOCABULARY
_SIZES = {"vocab_size": VOCABULARY, "hidden_size": 48}
_BLOOM = {**_SIZES, "n_layer": 2, "n_head": 6}
_MPT = {"vocab_size": VOCABULARY, "d_model": 48, "n_heads": 6, "n_layers": 2, "max_seq_len": 64}
_FALCON = {**_SIZES, "num_hidden_layers": 2, "num_attention_heads": 6}
_DEBERTA = {
    **_SIZES,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "intermediate_size": 80,
    "max_position_embeddings": 64,
    "relative_attention": True,
    "pos_att_type": ["p2c", "c2p"],
    "type_vocab_size": 0,
}
_V3 = {
    "share_att_key": True,
    "position_buckets": 4,
    "norm_rel_ebd": "layer_norm",
    "position_biased_input": False,
}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "bloom": ("Bloom", _BLOOM),
    "mpt": ("Mpt", _MPT),
    "mpt clipped": ("Mpt", {**_MPT, "attn_config": {"clip_qkv": 0.5, "softmax_scale": 0.2}}),
    "falcon": ("Falcon", {**_FALCON, "alibi": False}),
    "falcon in turn": ("Falcon", {**_FALCON, "multi_query": False, "parallel_attn": False}),
    "falcon grouped": (
        "Falcon",
        {**_FALCON, "new_decoder_architecture": True, "num_kv_heads": 2},
    ),
    "falcon alibi": ("Falcon", {**_FALCON, "alibi": True, "bias": True}),
    "deberta-v3": ("DebertaV2", {**_DEBERTA, **_V3}),
    "deberta-v2": ("DebertaV2", _DEBERTA),
    "deberta c2p": ("DebertaV2", {**_DEBERTA, "pos_att_type": ["c2p"]}),
    "gpt-neo": ("GPTNeo", FAMILIES["gpt_neo"][2]),
    "gpt-j": ("GPTJ", FAMILIES["gptj"][2]),
    "codegen": ("CodeGen", FAMILIES["codegen"][2]),
    "xglm": (
        "XGLM",
        {"vocab_size": VOCABULARY, "d_model": 48, "ffn_dim": 80, "num_layers": 2, "attention_heads": 6},
    ),
    "deberta absolute": ("DebertaV2", {**_DEBERTA, "relative_attention": False, "pos_att_type": []}),
}  # fmt: skip


def built(case: str, how: str = "eager") -> Any:
    name, choices = CASES[case]
    kind = f"{name}Model" if name == "DebertaV2" else f"{name}ForCausalLM"
    return build(kind, f"{name}Config", {**choices, "attn_implementation": how})


def through_attend(body: Any) -> None:
    register()
    set_attention(body, NAME)
    adapt(body)
    assert not lead_inline(body, lambda: body(IDS), [IDS], ())


def result(made: Any) -> Tensor:
    return made.logits if "logits" in made else made.last_hidden_state


@cases("case", CASES)
def test_weights_and_logits_are_those_of_eager_attention(case) -> None:
    body = built(case)
    with torch.inference_mode():
        with reference_mended(body):
            theirs = body(IDS, output_attentions=True)
        through_attend(body)
        with recording(Recorder(level="attention", explicit=True)) as recorder:
            ours = body(IDS, use_cache=False) if hasattr(body, "lm_head") else body(IDS)
    for call, weights in zip(recorder.attention, theirs.attentions, strict=True):
        np.testing.assert_allclose(call.steps["weights"][0], weights[0], atol=1e-5)
    np.testing.assert_allclose(result(ours), result(theirs), atol=1e-4)


def test_falcon_adds_its_slopes_once_as_the_librarys_fused_attention_does() -> None:
    """Its eager attention adds them twice; without the mending it would not agree."""
    body = built("falcon alibi")
    with torch.inference_mode():
        fused, twice = built("falcon alibi", "sdpa")(IDS).logits, body(IDS).logits
        through_attend(body)
        ours = body(IDS).logits
    np.testing.assert_allclose(ours, fused, atol=1e-4)
    assert not np.allclose(twice, fused, atol=1e-2)


@cases("case", ["bloom", "mpt", "falcon alibi", "deberta-v3"])
def test_without_biases_the_scores_are_those_of_content_alone(case) -> None:
    body = built(case)
    through_attend(body)
    with (
        torch.inference_mode(),
        recording(Recorder(Intervention(bias=False), level="attention", explicit=True)) as recorder,
    ):
        body(IDS)
    call = recorder.attention[0]
    scores = call.query @ call.key.transpose(-1, -2) * call.scale
    if call.mask is not None:
        scores = scores.masked_fill(~call.mask.expand(-1, 6, -1, -1), -torch.inf)
    assert call.bias is None
    np.testing.assert_allclose(call.steps["weights"], scores.softmax(-1), atol=1e-5)


@cases("case", ["bloom", "mpt", "falcon", "falcon alibi", "gpt-neo", "gpt-j", "codegen"])
def test_a_cache_gives_the_same_next_logits(case) -> None:
    body = built(case)
    through_attend(body)
    with torch.inference_mode():
        whole = body(IDS).logits[0, -1]
        first = body(IDS[:, :-1], use_cache=True)
        then = body(IDS[:, -1:], past_key_values=first.past_key_values).logits[0, -1]
    np.testing.assert_allclose(then, whole, atol=1e-4)


def test_a_t5_reads_and_writes_as_many_tokens_as_it_is_trained_on() -> None:
    """Its config names no length: without a bound one that never ends would write for minutes."""
    named = T5Config(n_positions=48)
    unnamed = SimpleNamespace(relative_attention_num_buckets=32)
    source = SimpleNamespace(positions=None)
    assert [context_of(source, config) for config in (named, unnamed)] == [48, 512]


def test_an_mpt_reads_no_more_tokens_than_it_has_biases_for() -> None:
    assert loaded("mpt").config.n_ctx == 64
