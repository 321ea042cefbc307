"""Modules that nobody here wrote, small and untrained, each with inputs to run it on."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Made = tuple[nn.Module, tuple[Any, ...], dict[str, Any]]


def texts(length: int = 9) -> torch.Tensor:
    return torch.randint(0, 50, (2, length))


def vectors() -> torch.Tensor:
    return torch.randn(2, 9, 32)


def torch_attention() -> Made:
    x = vectors()
    return nn.MultiheadAttention(32, 4, batch_first=True), (x, x, x), {}


def torch_encoder_layer() -> Made:
    return nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), (vectors(),), {}


def torch_decoder_layer() -> Made:
    module = nn.TransformerDecoderLayer(32, 4, 64, batch_first=True)
    return module, (vectors(), torch.randn(2, 6, 32)), {}


def torch_transformer() -> Made:
    module = nn.Transformer(32, 4, 1, 1, 64, batch_first=True)
    return module, (vectors(), torch.randn(2, 6, 32)), {}


def x_transformers(**options: Any) -> Made:
    from x_transformers import Decoder, TransformerWrapper

    layers = Decoder(dim=32, depth=2, heads=4, attn_dim_head=8, **options)
    return TransformerWrapper(num_tokens=50, max_seq_len=32, attn_layers=layers), (texts(),), {}


def x_transformers_alibi() -> Made:
    return x_transformers(alibi_pos_bias=True, alibi_num_heads=2)


def x_transformers_rotary() -> Made:
    return x_transformers(rotary_pos_emb=True, rotary_emb_dim=4)


def x_transformers_memory() -> Made:
    return x_transformers(attn_num_mem_kv=3, attn_add_zero_kv=True)


def x_transformers_grouped() -> Made:
    return x_transformers(attn_kv_heads=2, attn_flash=True)


def x_transformers_two_stacks() -> Made:
    from x_transformers import XTransformer

    sides = {"num_tokens": 50, "depth": 1, "heads": 4, "max_seq_len": 16}
    options = {f"{side}_{name}": value for side in ("enc", "dec") for name, value in sides.items()}
    return XTransformer(dim=32, **options), (texts(), texts(6)), {}


def perceiver() -> Made:
    from perceiver_pytorch import Perceiver

    inputs = {"input_channels": 3, "input_axis": 2, "num_freq_bands": 2, "max_freq": 5.0}
    widths = {"latent_dim": 32, "cross_dim_head": 8, "latent_dim_head": 8}
    heads = {"depth": 1, "num_latents": 6, "cross_heads": 1, "latent_heads": 4}
    module = Perceiver(**inputs, **widths, **heads)
    return module, (torch.randn(1, 4, 4, 3),), {}


def axial_attention() -> Made:
    from axial_attention import AxialAttention

    module = AxialAttention(dim=32, dim_index=1, heads=4, num_dimensions=2)
    return module, (torch.randn(1, 32, 5, 6),), {}


def bert_pytorch() -> Made:
    from bert_pytorch.model import BERT

    return BERT(50, hidden=32, n_layers=2, attn_heads=4), (texts(), torch.zeros(2, 9).long()), {}


def conformer() -> Made:
    from conformer import ConformerBlock

    return ConformerBlock(dim=32, dim_head=8, heads=4), (vectors(),), {}


def simple_transformer() -> Made:
    from simple_transformer import Transformer

    options = {"embed_size": 32, "num_layers": 1, "heads": 4, "max_length": 20, "device": "cpu"}
    return Transformer(50, 50, 0, 0, **options), (texts(), texts(6)), {}


def of_transformers(model: str, config: str, **sizes: Any) -> Made:
    import transformers

    made = getattr(transformers, config)(vocab_size=50, **sizes)
    made._attn_implementation = "eager"
    return getattr(transformers, model)(made), (texts(),), {}


STANDARD = {
    "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 6, "intermediate_size": 48
}  # fmt: skip


def transformers_gpt2() -> Made:
    ends = {"bos_token_id": 0, "eos_token_id": 0}
    return of_transformers("GPT2Model", "GPT2Config", n_embd=32, n_layer=2, n_head=4, **ends)


def transformers_llama() -> Made:
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    return of_transformers("LlamaModel", "LlamaConfig", **sizes, **heads)


def transformers_t5() -> Made:
    sizes = {"d_model": 32, "d_kv": 8, "num_layers": 2, "num_heads": 4, "d_ff": 64}
    return of_transformers("T5EncoderModel", "T5Config", **sizes)


def transformers_gpt_neox() -> Made:
    return of_transformers("GPTNeoXModel", "GPTNeoXConfig", **STANDARD)


def transformers_gpt_neo() -> Made:
    sizes = {"hidden_size": 24, "num_layers": 2, "num_heads": 6, "window_size": 3}
    kinds = [[["global", "local"], 1]]
    return of_transformers("GPTNeoModel", "GPTNeoConfig", attention_types=kinds, **sizes)


def transformers_gpt_j() -> Made:
    sizes = {"n_embd": 24, "n_layer": 2, "n_head": 3, "rotary_dim": 4}
    return of_transformers("GPTJModel", "GPTJConfig", **sizes)


def transformers_codegen() -> Made:
    sizes = {"n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4}
    return of_transformers("CodeGenModel", "CodeGenConfig", **sizes)


def transformers_mpnet() -> Made:
    return of_transformers("MPNetModel", "MPNetConfig", **STANDARD)


def transformers_xlnet() -> Made:
    sizes = {"d_model": 24, "n_layer": 2, "n_head": 6, "d_inner": 48}
    return of_transformers("XLNetModel", "XLNetConfig", **sizes)


def transformers_deepseek() -> Made:
    low = {
        "num_key_value_heads": 6,
        "q_lora_rank": 8,
        "kv_lora_rank": 8,
        "first_k_dense_replace": 2,
    }
    widths = {"qk_nope_head_dim": 4, "qk_rope_head_dim": 4, "v_head_dim": 4}
    return of_transformers("DeepseekV3Model", "DeepseekV3Config", **STANDARD, **low, **widths)


# Each with how many sub-layers it has, and whose it is.
MODULES: tuple[tuple[Callable[[], Made], int, str], ...] = (
    (torch_attention, 1, "PyTorch, `nn.MultiheadAttention`"),
    (torch_encoder_layer, 1, "PyTorch, `nn.TransformerEncoderLayer`"),
    (torch_decoder_layer, 2, "PyTorch, `nn.TransformerDecoderLayer`"),
    (torch_transformer, 3, "PyTorch, `nn.Transformer`"),
    (x_transformers, 2, "x-transformers, a decoder"),
    (x_transformers_alibi, 2, "x-transformers, a decoder with ALiBi"),
    (x_transformers_rotary, 2, "x-transformers, a decoder with rotary positions"),
    (x_transformers_memory, 2, "x-transformers, a decoder with learned keys"),
    (x_transformers_grouped, 2, "x-transformers, a decoder with shared keys and the fused kernel"),
    (x_transformers_two_stacks, 3, "x-transformers, encoder and decoder"),
    (perceiver, 2, "perceiver-pytorch, `Perceiver`"),
    (axial_attention, 2, "axial-attention, `AxialAttention`"),
    (bert_pytorch, 2, "bert-pytorch, `BERT`"),
    (conformer, 1, "conformer, `ConformerBlock`"),
    (simple_transformer, 3, "simple-transformer, `Transformer` of a course"),
    (transformers_gpt_neox, 2, "transformers, `GPTNeoXModel` as a plain module"),
    (transformers_gpt_neo, 2, "transformers, `GPTNeoModel` as a plain module"),
    (transformers_gpt_j, 2, "transformers, `GPTJModel` as a plain module"),
    (transformers_codegen, 2, "transformers, `CodeGenModel` as a plain module"),
    (transformers_mpnet, 2, "transformers, `MPNetModel` as a plain module"),
    (transformers_xlnet, 2, "transformers, `XLNetModel` as a plain module"),
    (transformers_deepseek, 2, "transformers, `DeepseekV3Model` as a plain module"),
    (transformers_gpt2, 2, "transformers, `GPT2Model` as a plain module"),
    (transformers_llama, 2, "transformers, `LlamaModel` as a plain module"),
    (transformers_t5, 2, "transformers, `T5EncoderModel` as a plain module"),
)
