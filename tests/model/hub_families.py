"""Families of Hugging Face's library, small: class, config and its choices; and how each opens."""

from typing import Any

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
_SMALL = {"vocab_size": VOCABULARY, "hidden_size": 48, **_IDS}
_FALCON = {**_SMALL, "num_hidden_layers": 2, "num_attention_heads": 6}
_T5 = {
    "vocab_size": VOCABULARY,
    "d_model": 48,
    "d_kv": 8,
    "n_positions": 48,
    "d_ff": 80,
    "num_layers": 2,
    "num_heads": 6,
    "decoder_start_token_id": 0,
    "pad_token_id": 0,
    "eos_token_id": 2,
}
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
    "arcee": ("ArceeForCausalLM", "ArceeConfig", GROUPED),  # with a squared ReLU
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
    "t5": ("T5ForConditionalGeneration", "T5Config", _T5),
    "flan-t5": (
        "T5ForConditionalGeneration",
        "T5Config",
        {**_T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
    ),
    "mt5": ("MT5ForConditionalGeneration", "MT5Config", _T5),
    "bloom": ("BloomForCausalLM", "BloomConfig", {**_SMALL, "n_layer": 2, "n_head": 6}),
    "mpt": (
        "MptForCausalLM",
        "MptConfig",
        {"vocab_size": VOCABULARY, "d_model": 48, "n_heads": 6, "n_layers": 2, "max_seq_len": 64, **_IDS},
    ),
    "falcon": (
        "FalconForCausalLM",
        "FalconConfig",
        {**_FALCON, "new_decoder_architecture": True, "num_kv_heads": 2},
    ),
    "falcon, ALiBi": ("FalconForCausalLM", "FalconConfig", {**_FALCON, "alibi": True, "bias": True}),
    "deberta-v3": (
        "DebertaV2Model",
        "DebertaV2Config",
        {**_SMALL, "num_hidden_layers": 2, "num_attention_heads": 6, "intermediate_size": 80,
         "max_position_embeddings": 64, "relative_attention": True, "pos_att_type": ["p2c", "c2p"],
         "type_vocab_size": 0, "share_att_key": True, "position_buckets": 4,
         "norm_rel_ebd": "layer_norm", "position_biased_input": False},
    ),
    "gpt_neo": (
        "GPTNeoForCausalLM",
        "GPTNeoConfig",
        {**_SMALL, "num_layers": 2, "num_heads": 6, "attention_types": [[["global", "local"], 1]],
         "window_size": 4, "max_position_embeddings": 64},
    ),
    "gptj": ("GPTJForCausalLM", "GPTJConfig", {**_GPT2, "rotary_dim": 4}),
    "codegen": ("CodeGenForCausalLM", "CodeGenConfig", {**_GPT2, "n_head": 4, "rotary_dim": 4}),
    "mpnet": ("MPNetModel", "MPNetConfig", _LLAMA),
}  # fmt: skip
_STATES = {**_SMALL, "num_hidden_layers": 2, "state_size": 4}
BETWEEN_LAYERS = {
    "stream", "embedding", "norms", "unembedding", "logit_parts", "positions", "sizes",
}  # fmt: skip
_WITHOUT_STREAM = BETWEEN_LAYERS - {"positions"}
_EXPERTS = {**GROUPED, "num_experts_per_tok": 2, "moe_intermediate_size": 40}
_LATENT = {
    **_EXPERTS, "num_key_value_heads": 6, "q_lora_rank": 24, "kv_lora_rank": 16, "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8, "v_head_dim": 12, "n_routed_experts": 8, "n_group": 2, "topk_group": 1,
    "first_k_dense_replace": 1,
}  # fmt: skip
INDEXED = {**_LATENT, "index_topk": 5, "index_head_dim": 16, "index_n_heads": 2}
# Those that open without some parts, or have experts in the place of neurons: which parts.
PARTLY: dict[str, tuple[str, str, dict[str, Any], set[str]]] = {
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", {**GROUPED, "num_local_experts": 4}, set()),
    "qwen3_moe": (
        "Qwen3MoeForCausalLM",
        "Qwen3MoeConfig",
        {**_EXPERTS, "head_dim": 16, "num_experts": 4},
        set(),
    ),
    "deepseek_v3": (
        "DeepseekV3ForCausalLM",
        "DeepseekV3Config",
        _LATENT,
        set(),
    ),
    "albert": ("AlbertModel", "AlbertConfig", {**_LLAMA, "embedding_size": 32}, {"sizes", "embedding"}),
    "gemma2": (
        "Gemma2ForCausalLM",
        "Gemma2Config",
        {**GROUPED, "head_dim": 16, "sliding_window": 4},
        {"logit_parts"},
    ),
    "gpt_oss": (
        "GptOssForCausalLM",
        "GptOssConfig",
        {**GROUPED, "head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2,
         "sliding_window": 4},
        set(),
    ),
    "openai-gpt": ("OpenAIGPTLMHeadModel", "OpenAIGPTConfig", _GPT2, set()),
    "xglm": (
        "XGLMForCausalLM",
        "XGLMConfig",
        {**_SMALL, "ffn_dim": 80, "num_layers": 2, "attention_heads": 6, "max_position_embeddings": 64},
        set(),
    ),
    "deepseek_v32": ("DeepseekV32ForCausalLM", "DeepseekV32Config", INDEXED, {"sizes"}),
    "afmoe": (  # gates on what heads give
        "AfmoeForCausalLM",
        "AfmoeConfig",
        {**_EXPERTS, "head_dim": 8, "num_experts": 4, "sliding_window": 4,
         "global_attn_every_n_layers": 3, "num_dense_layers": 1},
        {"output", "sizes"},
    ),
    "laguna": (
        "LagunaForCausalLM",
        "LagunaConfig",
        {**_EXPERTS, "head_dim": 8, "num_experts": 4, "sliding_window": 4},
        {"output", "sizes"},
    ),
    "jamba": (
        "JambaForCausalLM",
        "JambaConfig",
        {**GROUPED, "num_hidden_layers": 4, "attn_layer_period": 2, "attn_layer_offset": 1,
         "expert_layer_period": 2, "expert_layer_offset": 1, "num_experts": 4, "mamba_d_state": 4,
         "use_mamba_kernels": False},
        BETWEEN_LAYERS,
    ),
    "falcon_h1": (
        "FalconH1ForCausalLM",
        "FalconH1Config",
        {**GROUPED, "mamba_d_ssm": 48, "mamba_n_heads": 6, "mamba_d_head": 8, "mamba_d_state": 8},
        BETWEEN_LAYERS,
    ),
}  # fmt: skip
# The same of families whose code asks for values, so that no pass runs without them, or has one layer.
ODD: dict[str, tuple[str, str, dict[str, Any], set[str]]] = {
    "roformer": ("RoFormerModel", "RoFormerConfig", {**_LLAMA, "embedding_size": 48}, {"positions"}),
    "xlnet": (
        "XLNetLMHeadModel",
        "XLNetConfig",
        {"vocab_size": VOCABULARY, "d_model": 48, "n_layer": 2, "n_head": 6, "d_inner": 80, **_IDS},
        _WITHOUT_STREAM | {"output", "feed_forward"},
    ),
    "mobilebert": (
        "MobileBertModel",
        "MobileBertConfig",
        {**_LLAMA, "num_hidden_layers": 2, "num_attention_heads": 4, "intra_bottleneck_size": 24,
         "true_hidden_size": 24, "embedding_size": 16},
        BETWEEN_LAYERS | {"feed_forward"},
    ),
    "gemma3n": (
        "Gemma3nForCausalLM",
        "Gemma3nTextConfig",
        {**GROUPED, "num_hidden_layers": 5, "head_dim": 8, "vocab_size_per_layer_input": VOCABULARY,
         "hidden_size_per_layer_input": 8, "num_kv_shared_layers": 0, "altup_num_inputs": 2,
         "laurel_rank": 4, "sliding_window": 4, "activation_sparsity_pattern": [0.0] * 5,
         "layer_types": [*["sliding_attention"] * 4, "full_attention"]},
        _WITHOUT_STREAM | {"feed_forward"},
    ),
    "xmod": (
        "XmodModel",
        "XmodConfig",
        {**_LLAMA, "languages": ["en_XX", "de_DE"], "default_language": "en_XX"},
        _WITHOUT_STREAM | {"feed_forward"},
    ),
    "minimax": (
        "MiniMaxForCausalLM",
        "MiniMaxConfig",
        {**GROUPED, "head_dim": 8, "num_local_experts": 2, "num_experts_per_tok": 1, "block_size": 4,
         "layer_types": ["linear_attention", "full_attention", "linear_attention"]},
        BETWEEN_LAYERS,
    ),
}  # fmt: skip
REFUSED: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "mamba": ("MambaForCausalLM", "MambaConfig", _STATES, "it has no attention"),
    "longformer": (
        "LongformerModel",
        "LongformerConfig",
        {**_LLAMA, "attention_window": 4},
        "do not compute .* over the whole text at once",
    ),
    "squeezebert": (
        "SqueezeBertModel",
        "SqueezeBertConfig",
        {**_LLAMA, "embedding_size": 48},
        "are not rows that sum to 1",
    ),
    "rwkv": (
        "RwkvForCausalLM",
        "RwkvConfig",
        {**_SMALL, "num_hidden_layers": 2, "attention_hidden_size": 48, "intermediate_size": 80},
        "it has no attention",
    ),
}  # fmt: skip
# Their tokenizers add two tokens.
ADDING = ("bert", "roberta", "distilbert", "bart", "marian", "modernbert", "albert", "deberta-v3")
