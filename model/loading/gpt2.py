"""GPT-2's weights, as the Hugging Face hub lays them out, in our own decoder: of any size, and
distilgpt2."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from model.download.hub_folder import described, read_json, weight_files
from model.hub.claims import check_numbers
from model.nn.config import Activation, TransformerConfig
from model.nn.transformer import Transformer
from model.run.tokenizers import GPT2Subset, gpt2
from model.system.files import NotReadError
from model.trace.records import Token

_ACTIVATIONS: dict[str, Activation] = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu": "gelu",
    "relu": "relu",
}
_UNSUPPORTED = {  # settings that would change the computation, with their usual values
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}
_BLOCK = {
    "attn.c_proj": "self_attention.output",
    "mlp.c_fc": "feed_forward.w_in",
    "mlp.c_proj": "feed_forward.w_out",
    "ln_1": "self_norm",
    "ln_2": "feed_forward_norm",
}


class GPT2Tokens(GPT2Subset):
    """All of GPT-2's tokens under their own ids. Typed text is never read as a special token."""

    def __init__(self) -> None:
        super().__init__(range(gpt2().n_vocab))
        self.end = gpt2().eot_token

    def named(self, ids: Sequence[int]) -> tuple[Token, ...]:
        return tuple(
            Token(token.id, token.text, special=True) if token.id == self.end else token
            for token in super().named(ids)
        )


def is_gpt2(folder: Path) -> bool:
    """Whether a folder holds a GPT-2 that our own decoder can run, with GPT-2's own vocabulary."""
    settings = described(folder)
    return (
        settings.get("model_type") == "gpt2"
        and settings.get("activation_function", "gelu_new") in _ACTIVATIONS
        and all(settings.get(name, plain) == plain for name, plain in _UNSUPPORTED.items())
        and settings.get("vocab_size", gpt2().n_vocab) == gpt2().n_vocab
        and _vocabulary(folder) == _spelled()
    )


def load_gpt2(folder: Path) -> tuple[Transformer, GPT2Tokens]:
    """A GPT-2 and its tokenizer. Raises ValueError for files that are damaged or do not fit each
    other."""
    with torch.device("meta"):  # without memory, until the weights' own sizes are known
        module = Transformer(gpt2_config(described(folder)))
    try:
        state: dict[str, Tensor] = {}
        for file in weight_files(folder):
            state |= safetensors.torch.load_file(file)
        module.load_state_dict(gpt2_state(state, module.config.decoder_layers), assign=True)
        check_numbers(module)
    except OSError as error:
        raise NotReadError("model.safetensors", folder.name, error) from error
    except (SafetensorError, RuntimeError, KeyError) as error:
        raise ValueError("its weights are damaged, or do not fit its config") from error
    return module.eval(), GPT2Tokens()


def gpt2_config(settings: dict[str, Any]) -> TransformerConfig:
    """Our config for a hub config of GPT-2: pre-norm, learned positions, tied output."""
    width = settings.get("n_embd", 768)
    return TransformerConfig(
        shape="decoder",
        d_vocab=settings.get("vocab_size", 50_257),
        n_ctx=settings.get("n_positions", 1_024),
        d_model=width,
        heads=settings.get("n_head", 12),
        decoder_layers=settings.get("n_layer", 12),
        d_mlp=settings.get("n_inner") or 4 * width,
        activation=_ACTIVATIONS[settings.get("activation_function", "gelu_new")],
        epsilon=settings.get("layer_norm_epsilon", 1e-5),
    )


def gpt2_state(state: dict[str, Tensor], layers: int) -> dict[str, Tensor]:
    """The hub's tensors under our names, as float32. GPT-2's matrices are transposed, and one holds
    queries, keys and values."""
    state = {name.removeprefix("transformer."): value.float() for name, value in state.items()}
    ours = {
        "embedding.tokens.weight": state["wte.weight"],
        "embedding.positions.weight": state["wpe.weight"],
        "decoder.final_norm.gamma": state["ln_f.weight"],
        "decoder.final_norm.beta": state["ln_f.bias"],
    }
    for layer in range(layers):
        old, new = f"h.{layer}", f"decoder.blocks.{layer}"
        weights = state[f"{old}.attn.c_attn.weight"].T.chunk(3)
        biases = state[f"{old}.attn.c_attn.bias"].chunk(3)
        for name, weight, bias in zip(("query", "key", "value"), weights, biases, strict=True):
            ours[f"{new}.self_attention.{name}.weight"] = weight.contiguous()
            ours[f"{new}.self_attention.{name}.bias"] = bias
        for theirs, own in _BLOCK.items():
            matrix, bias = (state[f"{old}.{theirs}.{part}"] for part in ("weight", "bias"))
            if own.endswith("norm"):
                ours |= {f"{new}.{own}.gamma": matrix, f"{new}.{own}.beta": bias}
            else:
                ours |= {f"{new}.{own}.weight": matrix.T.contiguous(), f"{new}.{own}.bias": bias}
    return ours


def _vocabulary(folder: Path) -> dict[str, int] | None:
    """The vocabulary of a folder's tokenizer: letters that stand for bytes, to ids."""
    with suppress(ValueError):
        return read_json(folder / "vocab.json")
    with suppress(ValueError):
        parts = read_json(folder / "tokenizer.json").get("model")
        return parts.get("vocab") if isinstance(parts, dict) else None
    return None


def _spelled() -> dict[str, int]:
    """GPT-2's vocabulary as its files write it."""
    from model.hub.tokenizer import letters_of_bytes

    letters = letters_of_bytes()
    spelled = {
        "".join(letters[byte] for byte in gpt2().decode_single_token_bytes(id_)): id_
        for id_ in range(gpt2().n_vocab - 1)
    }
    return spelled | {"<|endoftext|>": gpt2().eot_token}
