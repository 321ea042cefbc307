"""Odd models and odd configs: each opens, or is refused in a sentence, without any internal message."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import transformers
from safetensors.torch import save_file

from model import Model, load_model
from model.loading.in_memory import trace
from tests.cases import cases
from tests.model.hub_families import _BART, _GPT2, _LLAMA, _SMALL, _T5, GROUPED, VOCABULARY
from tests.model.hub_models import build, save, saved

# Words of Python, NumPy and PyTorch. What the library itself says stands in quotes.
INTERNAL = re.compile(
    r"Error|gufunc|broadcast|operand|Tensor|tensor\b|NoneType|object|attribute|argument|index out|mismatch"
    r"|\bNone\b|(?<!\.)\bself\b|dtype|\.\.|This part of|Reinstall|shape '|\(\)"
)
_MADE: dict[str, tuple[str, dict[str, Any]]] = {
    "no layers": ("LlamaForCausalLM", {**_LLAMA, "num_hidden_layers": 0}),
    "an encoder without layers": ("BertModel", {**_LLAMA, "num_hidden_layers": 0}),
    "two positions": ("GPT2LMHeadModel", {**_GPT2, "n_positions": 2}),
    "three positions": ("LlamaForCausalLM", {**_LLAMA, "max_position_embeddings": 3}),
    "tokens narrower than layers": (
        "OPTForCausalLM",
        {**_LLAMA, "ffn_dim": 80, "word_embed_proj_dim": 24},
    ),
    "one norm at both ends": ("NanoChatForCausalLM", GROUPED),
    "sparse and dense layers": (
        "SwitchTransformersForConditionalGeneration",
        {**_T5, "num_experts": 4, "num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1},
    ),
    "no language chosen": ("XmodModel", {**_LLAMA, "languages": ["en_XX", "de_DE"]}),
    "quantized parts": ("IBertModel", _LLAMA),
    "pieces": ("LongT5ForConditionalGeneration", {**_T5, "local_radius": 4}),
    "windows": (
        "LEDForConditionalGeneration",
        {**_BART, "attention_window": 4, "max_encoder_position_embeddings": 64,
         "max_decoder_position_embeddings": 64},
    ),
    "a prompt of its own": (
        "CpmAntForCausalLM",
        {"vocab_size": VOCABULARY, "hidden_size": 48, "num_attention_heads": 6, "dim_head": 8,
         "dim_ff": 80, "num_hidden_layers": 2, "position_bias_num_buckets": 8,
         "position_bias_max_distance": 32},
    ),
    "several words ahead": (
        "ProphetNetForConditionalGeneration",
        {**_SMALL, "num_encoder_layers": 2, "num_decoder_layers": 2, "num_encoder_attention_heads": 6,
         "num_decoder_attention_heads": 6, "encoder_ffn_dim": 80, "decoder_ffn_dim": 80,
         "max_position_embeddings": 64, "decoder_start_token_id": 2},
    ),
    "buckets of hashes": ("YosoModel", _LLAMA),
    "landmarks": ("NystromformerModel", {**_LLAMA, "num_landmarks": 4, "segment_means_seq_len": 16}),
    "Fourier": ("FNetModel", _LLAMA),
    "convolutions": ("ConvBertModel", {**_LLAMA, "embedding_size": 48}),
    "languages in a table": (
        "XLMWithLMHeadModel",
        {"vocab_size": VOCABULARY, "emb_dim": 48, "n_layers": 2, "n_heads": 6,
         "max_position_embeddings": 64, "n_langs": 1},
    ),
    "two tables of segments": ("TapasModel", _LLAMA),
    "two tables of positions": ("LayoutLMModel", _LLAMA),
    "pooled layers": (
        "FunnelModel",
        {"vocab_size": VOCABULARY, "block_sizes": [1, 1], "num_decoder_layers": 1, "d_model": 48,
         "n_head": 6, "d_head": 8, "d_inner": 80},
    ),
    "another translator": (
        "FSMTForConditionalGeneration",
        {**_BART, "src_vocab_size": VOCABULARY, "tgt_vocab_size": VOCABULARY, "langs": ["en", "de"]},
    ),
    "a mask that the library loses": (
        "NllbMoeForConditionalGeneration",
        {**_BART, "num_experts": 4, "expert_capacity": 8},
    ),
    "a residual with a factor": ("DogeForCausalLM", GROUPED),
    "no positions to switch off": (
        "CTRLLMHeadModel",
        {"vocab_size": VOCABULARY, "n_embd": 48, "dff": 80, "n_layer": 2, "n_head": 6, "n_positions": 64},
    ),
    "no text": ("ViTModel", {"hidden_size": 48, "num_hidden_layers": 1, "num_attention_heads": 6}),
    "letters": ("CanineModel", {**_LLAMA, "local_transformer_stride": 8, "num_hash_buckets": 16}),
}  # fmt: skip
_CHANGED: dict[str, tuple[str, dict[str, Any]]] = {
    "heads that do not divide": ("llama", {"num_attention_heads": 5}),
    "groups that do not divide": ("llama", {"num_key_value_heads": 4}),
    "another width": ("llama", {"hidden_size": 60}),
    "no width": ("llama", {"hidden_size": 0}),
    "fewer layers": ("llama", {"num_hidden_layers": 1}),
    "a text as a number": ("llama", {"hidden_size": "48"}),
    "an unknown activation": ("llama", {"hidden_act": "swoosh"}),
    "an odd head": ("llama", {"head_dim": 7}),
    "a list of layers too short": ("gemma3", {"layer_types": ["full_attention"]}),
    "an unknown layer": ("gemma3", {"layer_types": ["x"] * 3}),
    "no first token": ("bart", {"decoder_start_token_id": None, "forced_eos_token_id": None}),
    "a decoder turned encoder": ("bert", {"is_decoder": True}),
    "an epsilon of nothing": ("llama", {"rms_norm_eps": None}),
    "an unknown rotation": ("llama", {"rope_parameters": {"rope_type": "spiral"}}),
    "fewer buckets": ("mpnet", {"relative_attention_num_buckets": 8}),
    "a window of nothing": ("gpt_neo", {"window_size": 0}),
    "a kind in a list": ("llama", {"model_type": ["llama"]}),
    "an architecture in two lists": ("llama", {"architectures": [["LlamaForCausalLM"]]}),
    "matrices that are tied by a word": ("llama", {"tie_word_embeddings": "yes"}),
    "kinds of attention too few": ("gpt_neo", {"attention_types": [[["global"], 1]]}),
}


def sentences(folder: Path) -> list[str]:
    """The refusal, or the reasons for what is left out."""
    try:
        model: Model = load_model(str(folder), device="cpu")
    except ValueError as refusal:
        return [str(refusal).replace(str(folder), "The model")]
    return [f"{reason}." for reason in model.unproven.values()]


def hold(said: list[str]) -> None:
    for sentence in said:
        ours = re.sub("“.*”", "", sentence)
        assert sentence.endswith("."), sentence
        assert not INTERNAL.search(ours), sentence


@cases("odd", _MADE)
def test_an_odd_model_is_opened_or_refused_in_a_sentence(odd, tmp_path: Path) -> None:
    kind, choices = _MADE[odd]
    settings = getattr(transformers, kind).config_class.__name__
    hold(sentences(save(tmp_path, build(kind, settings, choices), adds=False)))


def test_a_model_without_attention_is_not_said_to_have_no_layers() -> None:
    sizes = {"mamba_n_heads": 6, "mamba_d_head": 16, "mamba_d_state": 8}
    more = {"num_local_experts": 4, "num_experts_per_tok": 2, "layer_types": ["mamba"] * 3}
    for kind, choices in (("Bamba", {"attn_layer_indices": []}), ("GraniteMoeHybrid", more)):
        body = build(f"{kind}ForCausalLM", f"{kind}Config", {**GROUPED, **sizes, **choices})
        with pytest.raises(ValueError, match="has attention"):
            trace(body, None, [4, 5, 6])
    empty = build("LlamaForCausalLM", "LlamaConfig", {**GROUPED, "num_hidden_layers": 0})
    with pytest.raises(ValueError, match="no layers"):
        trace(empty, None, [4, 5, 6])


@cases("odd", _CHANGED)
def test_an_odd_config_is_refused_in_a_sentence(odd, tmp_path: Path) -> None:
    family, changes = _CHANGED[odd]
    folder = shutil.copytree(saved(family), tmp_path / "copy")
    described = json.loads((folder / "config.json").read_text()) | changes
    (folder / "config.json").write_text(json.dumps(described))
    hold(sentences(folder))


@cases("family", ["llama", "gpt2"])
def test_an_adapter_beside_a_model_is_not_passed_over(family, tmp_path: Path) -> None:
    folder = shutil.copytree(saved(family), tmp_path / "copy")
    save_file({}, folder / "adapter_model.safetensors")
    with pytest.raises(
        ValueError, match=r"an adapter lies beside it \(adapter_model.safetensors\)"
    ):
        load_model(str(folder), device="cpu")


def test_a_folder_of_ones_own_is_not_repaired_by_installing_the_app(tmp_path: Path) -> None:
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(ValueError, match=r"sha256\.json") as refusal:
        load_model(str(tmp_path), device="cpu")
    hold([str(refusal.value)])


def test_what_trace_refuses_names_capture() -> None:
    vision = transformers.ViTModel(
        transformers.ViTConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1)
    )
    with pytest.raises(
        ValueError, match=r"`capture\(model, …\)` may record its attention alone\.$"
    ):
        trace(vision, None, [1, 2])


class OneText(transformers.LlamaForCausalLM):
    """A model as somebody writes it in a notebook: what it keeps of a text fits no other."""

    kept = 0

    def forward(self, input_ids: Any = None, **named: Any) -> Any:
        self.kept += 1
        return super().forward(input_ids, **named) if self.kept < 3 else [][self.kept]


OneText.__module__ = "__main__"


def test_an_error_of_a_model_that_nobody_foresaw_is_a_refusal() -> None:
    """It runs for the library's own pass and the probe, and then no more."""
    model = OneText.from_pretrained(saved("llama"))
    with pytest.raises(ValueError, match="the parts of OneText do not fit together") as refusal:
        trace(model, None, [4, 5, 6])
    assert isinstance(refusal.value.__cause__.__cause__, IndexError)
