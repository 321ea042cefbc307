"""Models whose weights are set by hand, so that a claim is true of them, or is not."""

from contextlib import nullcontext

import torch
from torch import Tensor

from model import Model
from model.nn.config import TransformerConfig
from model.nn.transformer import Transformer
from model.papers.subject import Subject
from model.run.tokenizers import WordTokenizer
from tests.model.tiny import loaded

LETTERS = "abcdefghijklmnopqrstuvwx"
CONTEXT = 32
# Where a token, its position, the token before it and the answer stand in a state, one entry for each.
TOKEN, POSITION, BEFORE, ANSWER = 0, 24, 56, 80
WIDTH, HEADS = 104, 2
HEAD = WIDTH // HEADS
SHARP = 3.0  # of scores: the largest one gets all of the weight


def subject(model: Model) -> Subject:
    """A model that is asked without turns."""
    return Subject(model, nullcontext)


def wired(*, looks_back: bool = True, rests: bool = False) -> Model:
    """A model of two layers that continues a list by induction: a head of the first layer writes the token
    before into each state, one of the second looks for its own token there and copies what stands with it.

    looks_back: whether the first head looks at the token before, or at all alike. rests: whether the other
    head of each layer looks at the first token, or at all alike.
    """
    config = TransformerConfig(
        shape="decoder",
        d_vocab=len(LETTERS),
        n_ctx=CONTEXT,
        d_model=WIDTH,
        heads=HEADS,
        decoder_layers=2,
        d_mlp=0,
        tied=False,
        qkv_bias=False,
        output_bias=False,
    )
    module = Transformer(config)
    assert module.decoder is not None
    assert module.output is not None
    for name, weight in module.named_parameters():
        if "norm" not in name:
            weight.data.zero_()
    tokens, positions = torch.arange(len(LETTERS)), torch.arange(CONTEXT)
    module.embedding.tokens.weight.data[tokens, TOKEN + tokens] = 1
    assert module.embedding.positions is not None
    module.embedding.positions.weight.data[positions, POSITION + positions] = 1
    module.output.weight.data[tokens, ANSWER + tokens] = 10
    first, second = (block.self_attention for block in module.decoder.blocks)
    if looks_back:
        first.query.weight.data[positions, POSITION + positions] = SHARP
        first.key.weight.data[positions[1:], POSITION + positions[:-1]] = 1
    second.query.weight.data[tokens, TOKEN + tokens] = SHARP
    second.key.weight.data[tokens, BEFORE + tokens] = 1
    for layer, slot in ((first, BEFORE), (second, ANSWER)):
        layer.value.weight.data[tokens, TOKEN + tokens] = 1
        layer.output.weight.data[slot + tokens, tokens] = (
            1 / 7
        )  # about what the norm has multiplied by
        if rests:
            layer.query.weight.data[HEAD, TOKEN + tokens] = SHARP
            layer.key.weight.data[HEAD, POSITION] = 1
    return Model("wired", module, WordTokenizer(tuple(LETTERS)))


def encoder() -> Model:
    """A random encoder that reads words."""
    tokenizer = loaded("stories").tokenizer
    config = TransformerConfig(
        shape="encoder",
        d_vocab=tokenizer.size,
        n_ctx=64,
        d_model=24,
        heads=3,
        encoder_layers=2,
        d_mlp=40,
        norm_place="post",
    )
    draws = torch.Generator().manual_seed(0)
    module = Transformer(config)
    for weight in module.parameters():
        noise: Tensor = torch.randn(weight.shape, generator=draws)
        weight.data = 1 + noise / 3 if weight.ndim == 1 else noise / weight.shape[-1] ** 0.5
    return Model("encoder", module, tokenizer)
