"""Tiny random models of Hugging Face's families, saved as the hub lays them out."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from model import Intervention, Model, Trace, load_model
from model.nn.intervention import UNCHANGED

WORDS = [
    "the",
    "cat",
    "saw",
    "dog",
    ",",
    "and",
    "on",
    "mat",
    ".",
    "lion",
    "kills",
    "tiger",
    *"abcdefgh",
]
SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")
VOCABULARY = len(SPECIAL) + len(WORDS)
TEXT = "the cat saw the dog and the cat saw the mat"
TARGET = "the lion kills the tiger"
_IDS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
_LLAMA = {
    "vocab_size": VOCABULARY,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "max_position_embeddings": 64,
    **_IDS,
}
GROUPED = {**_LLAMA, "num_key_value_heads": 2}
_BART = {
    "vocab_size": VOCABULARY,
    "d_model": 48,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 6,
    "decoder_attention_heads": 6,
    "encoder_ffn_dim": 80,
    "decoder_ffn_dim": 80,
    "max_position_embeddings": 64,
    "decoder_start_token_id": 2,
    "forced_eos_token_id": 2,
    **_IDS,
}
_GPT2 = {
    "vocab_size": VOCABULARY,
    "n_embd": 48,
    "n_layer": 3,
    "n_head": 6,
    "n_positions": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_MARIAN = {"decoder_start_token_id": 0, "scale_embedding": True, "activation_function": "swish"}
FAMILIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", _GPT2),
    "bert": ("BertModel", "BertConfig", _LLAMA),
    "roberta": ("RobertaModel", "RobertaConfig", _LLAMA),
    "distilbert": (
        "DistilBertModel",
        "DistilBertConfig",
        {"vocab_size": VOCABULARY, "dim": 48, "hidden_dim": 80, "n_layers": 3, "n_heads": 6,
         "max_position_embeddings": 64, "pad_token_id": 0},
    ),
    "llama": ("LlamaForCausalLM", "LlamaConfig", GROUPED),
    "mistral": ("MistralForCausalLM", "MistralConfig", {**GROUPED, "sliding_window": 4}),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", {**GROUPED, "tie_word_embeddings": True}),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", {**GROUPED, "head_dim": 16}),
    "ernie": ("Ernie4_5ForCausalLM", "Ernie4_5Config", {**GROUPED, "head_dim": 8}),
    "gemma": ("GemmaForCausalLM", "GemmaConfig", {**GROUPED, "head_dim": 16}),
    "gpt_neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", _LLAMA),
    "phi": ("PhiForCausalLM", "PhiConfig", _LLAMA),
    "opt": (
        "OPTForCausalLM",
        "OPTConfig",
        {**_LLAMA, "ffn_dim": 80, "word_embed_proj_dim": 48},
    ),
    "phi3": ("Phi3ForCausalLM", "Phi3Config", GROUPED),
    "olmo2": ("Olmo2ForCausalLM", "Olmo2Config", GROUPED),
    "cohere": (
        "CohereForCausalLM",
        "CohereConfig",
        {**GROUPED, "logit_scale": 0.0625},
    ),
    "granite": (
        "GraniteForCausalLM",
        "GraniteConfig",
        {**GROUPED, "logits_scaling": 2.0, "embedding_multiplier": 3.0, "attention_multiplier": 0.3},
    ),
    "gemma3": (
        "Gemma3ForCausalLM",
        "Gemma3TextConfig",
        {**GROUPED, "head_dim": 16, "sliding_window": 4,
         "layer_types": ["sliding_attention", "sliding_attention", "full_attention"]},
    ),
    "modernbert": (
        "ModernBertModel",
        "ModernBertConfig",
        {**_LLAMA, "local_attention": 8, "global_attn_every_n_layers": 3, "cls_token_id": 1,
         "sep_token_id": 2},
    ),
    "bart": ("BartForConditionalGeneration", "BartConfig", _BART),
    "marian": ("MarianMTModel", "MarianConfig", {**_BART, **_MARIAN}),
}  # fmt: skip
_EXPERTS = {**GROUPED, "num_experts_per_tok": 2, "moe_intermediate_size": 40}
# Those that open without some parts: which.
PARTLY: dict[str, tuple[str, str, dict[str, Any], set[str]]] = {
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", {**GROUPED, "num_local_experts": 4}, {"sizes"}),
    "qwen3_moe": (
        "Qwen3MoeForCausalLM",
        "Qwen3MoeConfig",
        {**_EXPERTS, "head_dim": 16, "num_experts": 4},
        {"sizes"},
    ),
    "deepseek_v3": (
        "DeepseekV3ForCausalLM",
        "DeepseekV3Config",
        {**_EXPERTS, "num_key_value_heads": 6, "q_lora_rank": 24, "kv_lora_rank": 16,
         "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 12, "n_routed_experts": 8,
         "n_group": 2, "topk_group": 1, "first_k_dense_replace": 1},
        {"sizes"},
    ),
    "albert": ("AlbertModel", "AlbertConfig", {**_LLAMA, "embedding_size": 32}, {"sizes", "embedding"}),
    "gemma2": (
        "Gemma2ForCausalLM",
        "Gemma2Config",
        {**GROUPED, "head_dim": 16, "sliding_window": 4},
        {"logit_parts"},
    ),
    "t5": (
        "T5ForConditionalGeneration",
        "T5Config",
        {"vocab_size": VOCABULARY, "d_model": 48, "d_kv": 8, "d_ff": 80, "num_layers": 2,
         "num_heads": 6, "decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 2},
        {"sizes"},
    ),
    "gpt_oss": (
        "GptOssForCausalLM",
        "GptOssConfig",
        {**GROUPED, "head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2,
         "sliding_window": 4},
        {"sizes"},
    ),
}  # fmt: skip
REFUSED: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "bloom": (
        "BloomForCausalLM",
        "BloomConfig",
        {"vocab_size": VOCABULARY, "hidden_size": 48, "n_layer": 2, "n_head": 6, **_IDS},
        "interface",
    ),
}  # fmt: skip
# Their tokenizers add two tokens.
ADDING = ("bert", "roberta", "distilbert", "bart", "marian", "modernbert", "albert")


def build(kind: str, settings: str, choices: dict[str, Any]) -> Any:
    """A model of a class with random weights, norms and biases too; not yet saved."""
    config = getattr(transformers, settings)(**choices)
    torch.manual_seed(0)
    body = getattr(transformers, kind)(config)
    for weight in body.parameters():
        if weight.requires_grad:
            noise = torch.randn(weight.shape)
            wide = weight.ndim == 1
            weight.data = 1 + noise / 3 if wide else noise / weight.shape[-1] ** 0.5
    return body.eval()


def save(folder: Path, body: Any, *, adds: bool) -> Path:
    """A model and a tokenizer of whole words, in the hub's layout."""
    body.save_pretrained(folder)
    spelled = {word: id_ for id_, word in enumerate([*SPECIAL, *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(spelled, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    if adds:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
        )
    save_tokenizer(folder, tokenizer)
    return folder


def save_tokenizer(folder: Path, tokenizer: Tokenizer) -> None:
    """A tokenizer with the special tokens of these models, in the hub's layout."""
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="<unk>",
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
    ).save_pretrained(folder)


@cache
def saved(family: str) -> Path:
    """The folder of a tiny model, made once."""
    folder = Path(mkdtemp(prefix=f"{family}-"))
    kind, settings, choices = (FAMILIES | PARTLY | REFUSED)[family][:3]
    return save(folder, build(kind, settings, choices), adds=family in ADDING)


@cache
def loaded(family: str) -> Model:
    """A tiny model as the app loads it."""
    return load_model(str(saved(family)), device="cpu")


def eager(model: Model, trace: Trace, change: Callable[[Any], None] = lambda stock: None) -> Any:
    """What the library itself makes of the same ids, with its weights and states. change: what is done to its
    model before."""
    return eager_stock(model, trace, change, output_attentions=True, output_hidden_states=True)


def eager_stock(
    model: Model,
    trace: Trace,
    change: Callable[[Any], None] = lambda stock: None,
    **asked: bool,
) -> Any:
    """What the library itself makes of the same ids, with the attention it ships."""
    kinds = {
        "decoder": transformers.AutoModelForCausalLM,
        "encoder": transformers.AutoModel,
        "encoder-decoder": transformers.AutoModelForSeq2SeqLM,
    }
    stock = kinds[model.config.shape].from_pretrained(model.name, attn_implementation="eager")
    change(stock)
    fed = {"input_ids": torch.tensor([[token.id for token in trace.tokens]])}
    if trace.target_tokens:
        fed["decoder_input_ids"] = torch.tensor([[token.id for token in trace.target_tokens]])
    with torch.inference_mode():
        return stock.eval()(**fed, **asked)


def eager_weights(model: Model, theirs: Any) -> list[torch.Tensor]:
    """(1, head, query, key): the library's own weights of every layer, in order of execution."""
    if model.config.shape != "encoder-decoder":
        return [*theirs.attentions]
    layers = [*theirs.encoder_attentions]
    for own, cross in zip(theirs.decoder_attentions, theirs.cross_attentions, strict=True):
        layers += [own, cross]
    return layers


def traced(model: Model, intervention: Intervention = UNCHANGED, **more: Any) -> Trace:
    """A pass over the text, and the target of a model that reads two."""
    target = TARGET if model.config.shape == "encoder-decoder" else None
    return model.trace(TEXT, target, intervention, **more)
