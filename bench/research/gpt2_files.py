"""A shipped model as the files of a GPT-2 of Hugging Face's library, which TransformerLens loads."""

from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import bytes_to_unicode

from model import Model
from model.run.tokenizers import GPT2Subset, WordTokenizer

_ACTIVATIONS = {"gelu": "gelu", "gelu_tanh": "gelu_new"}


def save_as_gpt2(model: Model, folder: Path) -> None:
    """Writes weights, configuration and tokenizer of a decoder with GPT-2's architecture into a folder. One
    without feed-forwards gets such that write zeros."""
    config = model.config
    theirs = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=config.d_vocab,
            n_positions=config.n_ctx,
            n_embd=config.d_model,
            n_layer=config.decoder_layers,
            n_head=config.heads,
            n_inner=config.d_mlp or 1,
            activation_function=_ACTIVATIONS[config.activation],
            layer_norm_epsilon=config.epsilon,
            bos_token_id=0,
            eos_token_id=0,
        )
    )
    state = {name: torch.zeros_like(weight) for name, weight in theirs.state_dict().items()}
    state |= _weights(model)
    state["lm_head.weight"] = state["transformer.wte.weight"]
    theirs.load_state_dict(state)
    theirs.save_pretrained(folder)
    _tokenizer(model).save_pretrained(folder)


def _weights(model: Model) -> dict[str, Tensor]:
    """By Hugging Face's names. Its maps keep (in, out), and query, key and value lie side by side."""
    ours = model.module.state_dict()
    theirs = {
        "transformer.wte.weight": ours["embedding.tokens.weight"],
        "transformer.wpe.weight": ours["embedding.positions.weight"],
        "transformer.ln_f.weight": ours["decoder.final_norm.gamma"],
        "transformer.ln_f.bias": ours["decoder.final_norm.beta"],
    }
    maps = {"self_attention.output": "attn.c_proj"}
    norms = {"self_norm": "ln_1"}
    if model.config.d_mlp:
        maps |= {"feed_forward.w_in": "mlp.c_fc", "feed_forward.w_out": "mlp.c_proj"}
        norms |= {"feed_forward_norm": "ln_2"}
    for layer in range(model.config.decoder_layers):
        old, new = f"decoder.blocks.{layer}", f"transformer.h.{layer}"
        for part, norm in (("weight", "gamma"), ("bias", "beta")):
            joined = [
                ours[f"{old}.self_attention.{name}.{part}"] for name in ("query", "key", "value")
            ]
            theirs[f"{new}.attn.c_attn.{part}"] = torch.cat(joined).t()
            theirs |= {
                f"{new}.{to}.{part}": ours[f"{old}.{name}.{part}"].t() for name, to in maps.items()
            }
            theirs |= {
                f"{new}.{to}.{part}": ours[f"{old}.{name}.{norm}"] for name, to in norms.items()
            }
    return theirs


def _tokenizer(model: Model) -> PreTrainedTokenizerFast:
    own = model.tokenizer
    if isinstance(own, WordTokenizer):
        words = {word: id_ for id_, word in enumerate(own.words)}
        made = Tokenizer(models.WordLevel(words, unk_token=own.words[0]))
        made.normalizer = normalizers.Lowercase()
        made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    else:
        assert isinstance(own, GPT2Subset)
        made = Tokenizer(_pieces(own))
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return PreTrainedTokenizerFast(tokenizer_object=made)


def _pieces(own: GPT2Subset) -> models.BPE:
    """A piece that is a kept token is that token; any other is spelled in bytes."""
    letters = bytes_to_unicode()
    words = ("".join(letters[byte] for byte in own.raw(id_)) for id_ in range(own.size))
    return models.BPE(
        vocab={word: id_ for id_, word in enumerate(words)}, merges=[], ignore_merges=True
    )
