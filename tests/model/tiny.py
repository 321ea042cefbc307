"""Tiny random models of every shape, and the sentences that the tests feed them."""

import zlib
from functools import cache
from typing import Any

import torch

from model import Intervention, Model, Trace, load_model, models
from model.analysis.cost.operations import Operation
from model.nn.config import Shape, TransformerConfig
from model.nn.transformer import Transformer
from model.run.tokenizers import GPT2Subset, WordTokenizer, gpt2

ENGLISH = "the a cat dog lion tiger mat man saw kills sat on and big small gave it to . ,"
FRENCH = "un le chat chien voit l' homme"
WORDS = ("<start>", "<end>", *f"{ENGLISH} {FRENCH}".split())
CONTEXT = 16
SENTENCE = "the cat saw the cat on the mat"
TARGET = "le chat voit l'homme"

_BOTH = {"encoder_layers": 1, "decoder_layers": 2}  # unequal, so that mixing them up shows
_CHOICES: dict[str, dict[str, Any]] = {
    "gpt": {"shape": "decoder", "decoder_layers": 2},
    "gpt-bytes": {"shape": "decoder", "decoder_layers": 2, "activation": "gelu_tanh"},
    "llama": {"shape": "decoder", "decoder_layers": 2, "norm": "rms", "activation": "swiglu",
        "positions": "rotary", "qkv_bias": False, "output_bias": False, "tied": False},
    "attention-only": {"shape": "decoder", "decoder_layers": 2, "d_mlp": 0, "positions": "none",
        "qkv_bias": False},
    "gpt-post": {"shape": "decoder", "decoder_layers": 2, "norm_place": "post",
        "activation": "relu"},
    "bert": {"shape": "encoder", "encoder_layers": 2, "norm_place": "post", "segments": 2,
        "embedding_norm": True, "epsilon": 1e-12},
    "encoder-rotary": {"shape": "encoder", "encoder_layers": 2, "norm": "rms",
        "activation": "swiglu", "positions": "rotary"},
    "translator": {"shape": "encoder-decoder", **_BOTH, "norm_place": "post", "activation": "relu",
        "positions": "sinusoidal", "scaled_embedding": True},
    "translator-pre": {"shape": "encoder-decoder", **_BOTH, "activation": "gelu_tanh"},
    "translator-rotary": {"shape": "encoder-decoder", **_BOTH, "norm": "rms", "norm_place": "post",
        "positions": "rotary", "tied": False},
}  # fmt: skip
TINY = tuple(_CHOICES)
SHAPES: dict[str, Shape] = {
    **{name: choices["shape"] for name, choices in _CHOICES.items()},
    **{name: entry.shape for name, entry in models.items()},
}
MODELS = (
    *TINY,
    "house-gpt",
    "translate-en-fr",
)  # of trained weights one decoder, and one of two stacks


def of_shape(*shapes: Shape, among: tuple[str, ...] = MODELS) -> list[str]:
    """The names of the models of these shapes."""
    return [name for name in among if SHAPES[name] in shapes]


@cache
def loaded(name: str, device: str = "cpu") -> Model:
    """A tiny model or one of the registry; loaded once, and never changed by a test."""
    return build(name, device) if name in _CHOICES else load_model(name, device=device)


def build(name: str, device: str = "cpu", **changes: Any) -> Model:
    """A fresh tiny model. Same name, same weights. Every weight is random: norms and biases too."""
    tokenizer = _open_tokenizer() if name == "gpt-bytes" else closed_tokenizer()
    choices = {"d_mlp": 40, **_CHOICES[name], **changes}
    config = TransformerConfig(
        d_vocab=tokenizer.size, n_ctx=CONTEXT, d_model=24, heads=3, **choices
    )
    module = Transformer(config)
    draws = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    for parameter in module.parameters():
        noise = torch.randn(parameter.shape, generator=draws)
        wide = parameter.ndim == 1
        parameter.data = 1 + noise / 3 if wide else noise / parameter.shape[-1] ** 0.5
    module.embedding.tokens.weight.data *= 2
    return Model(name, module, tokenizer, torch.device(device))


def closed_tokenizer() -> WordTokenizer:
    return WordTokenizer(WORDS, start="<start>", end="<end>")


@cache
def _open_tokenizer() -> GPT2Subset:
    kept = gpt2().encode(SENTENCE) + gpt2().encode(" lion kills tiger sat")
    return GPT2Subset(kept)


def sentence(model: Model) -> str:
    """A sentence with a repeated word, in the model's own vocabulary."""
    known = model.tokenizer
    if isinstance(known, WordTokenizer) and known.new_words(SENTENCE):
        special = {known.start, known.end}
        words = [word for id_, word in enumerate(known.words) if id_ not in special][:6]
        return " ".join([*words, *words[:2]])
    return SENTENCE


def target(model: Model) -> str | None:
    """What the decoder of an encoder–decoder reads; None for other shapes."""
    if model.config.shape != "encoder-decoder":
        return None
    return TARGET if not model.tokenizer.new_words(TARGET) else sentence(model)


def run(model: Model, intervention: Intervention | None = None, **kind: Any) -> Trace:
    """One pass over the model's sentence, with an intervention or without."""
    return model.trace(sentence(model), target(model), intervention or Intervention(), **kind)


def quiet(*_: object) -> None:
    """Nobody watches."""


def is_product(step: Operation) -> bool:
    """Whether the operations of a step, if any, are those of a matrix product."""
    return step.name not in ("Scaled", "Weights")
