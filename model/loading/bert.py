"""BERT's weights, as the Hugging Face hub lays them out, in our own encoder."""

from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from model.download.hub_folder import read_json
from model.nn.config import Activation, TransformerConfig
from model.nn.transformer import Transformer
from model.run.tokenizers import WordPieces
from model.system.files import NotReadError

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
    "intermediate.dense": "feed_forward.inner",
    "output.dense": "feed_forward.outer",
}
_BLOCK_NORMS = {
    "attention.output.LayerNorm": "self_norm",
    "output.LayerNorm": "feed_forward_norm",
}


def load_bert(folder: Path) -> tuple[Transformer, WordPieces]:
    """A BERT-type encoder from config.json, tokenizer.json and model.safetensors.

    Raises ValueError for files that are damaged or do not fit each other.
    """
    config = bert_config(read_json(folder / "config.json"))
    module = Transformer(config)
    try:
        state = safetensors.torch.load_file(folder / "model.safetensors")
        module.load_state_dict(bert_state(state, config.encoder_layers))
    except OSError as error:
        raise NotReadError("model.safetensors", folder.name, error) from error
    except (SafetensorError, RuntimeError, KeyError) as error:
        raise ValueError(f"The weights in {folder.name} do not fit their config.") from error
    return module.eval(), WordPieces(folder / "tokenizer.json")


def bert_config(described: dict[str, Any]) -> TransformerConfig:
    """Our config for a hub config of BERT: post-norm, learned positions, a norm after the
    embeddings."""
    activations: dict[str, Activation] = {"gelu": "gelu", "relu": "relu", "gelu_new": "gelu_tanh"}
    if described["hidden_act"] not in activations:
        raise ValueError(f"Activation {described['hidden_act']!r} is not supported.")
    return TransformerConfig(
        shape="encoder",
        vocabulary=described["vocab_size"],
        context=described["max_position_embeddings"],
        width=described["hidden_size"],
        heads=described["num_attention_heads"],
        encoder_layers=described["num_hidden_layers"],
        hidden=described["intermediate_size"],
        norm_place="post",
        activation=activations[described["hidden_act"]],
        segments=described["type_vocab_size"],
        embedding_norm=True,
        epsilon=described["layer_norm_eps"],
    )


def bert_state(state: dict[str, Tensor], layers: int) -> dict[str, Tensor]:
    """The hub's tensors under our names, as float32."""
    state = {name.removeprefix("bert."): value.float() for name, value in state.items()}
    ours = {f"embedding.{new}": state[f"embeddings.{old}"] for old, new in _EMBEDDING.items()}
    for layer in range(layers):
        old_block, new_block = f"encoder.layer.{layer}", f"encoder.blocks.{layer}"
        for old, new in _BLOCK.items():
            for part in ("weight", "bias"):
                ours[f"{new_block}.{new}.{part}"] = state[f"{old_block}.{old}.{part}"]
        for old, new in _BLOCK_NORMS.items():
            for old_part, new_part in (("weight", "gamma"), ("bias", "beta")):
                ours[f"{new_block}.{new}.{new_part}"] = state[f"{old_block}.{old}.{old_part}"]
    return ours
