"""Models with random weights, made when they are opened. The same seed gives the same weights."""

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import nn

from model.download.hub_folder import check_memory
from model.loading.shipped import shipped_tokenizer
from model.loading.untrained import UNTRAINED_BY_NAME, UntrainedModel, untrained_bytes
from model.nn.attention import MultiHeadAttention
from model.nn.layers import Norm
from model.nn.transformer import Transformer
from model.run.tokenizers import GPT2Subset, GPT2WithEnds, gpt2
from model.trace.records import Token

SEED = 0


class GPT2Tokens(GPT2Subset):
    """All of GPT-2's tokens under their own ids. Typed text is never read as a special token."""

    def __init__(self) -> None:
        super().__init__(range(gpt2().n_vocab))
        self.end = gpt2().eot_token

    def named(self, ids: Sequence[int]) -> tuple[Token, ...]:
        return tuple(replace(token, special=token.id == self.end) for token in super().named(ids))


def load_untrained(name: str, most_bytes: int = 0) -> tuple[Transformer, GPT2Subset]:
    """The model of this name, with random weights, and its tokenizer. `most_bytes` bounds its memory; 0: no
    bound. Raises ValueError where it would take more."""
    model = UNTRAINED_BY_NAME[name]
    try:
        check_memory(untrained_bytes(name), most_bytes)
    except ValueError as refusal:
        raise ValueError(f"{name} cannot be opened: {refusal}.") from refusal
    return with_random_weights(model), _tokenizer(model)


def with_random_weights(model: UntrainedModel, seed: int = SEED) -> Transformer:
    """The module with its start values. They come from a generator of their own, so nothing else that draws
    random numbers is disturbed."""
    with torch.device("meta"):  # without memory until the values are drawn
        module = Transformer(model.config)
    module.to_empty(device="cpu")
    draws = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for part in module.modules():
            match part:
                case nn.Linear():  # as PyTorch starts it: all values within ±1/√(values that go in)
                    bound = 1 / math.sqrt(part.in_features)
                    if model.xavier:
                        nn.init.xavier_uniform_(part.weight, generator=draws)
                    else:
                        part.weight.uniform_(-bound, bound, generator=draws)
                    if part.bias is not None:
                        part.bias.uniform_(-bound, bound, generator=draws)
                case nn.Embedding() if model.config.scaled_embedding:  # scaled later by as much
                    part.weight.normal_(std=1 / math.sqrt(part.embedding_dim), generator=draws)
                case nn.Embedding() if model.xavier and part.embedding_dim == model.config.d_model:
                    nn.init.xavier_uniform_(part.weight, generator=draws)
                case nn.Embedding():  # as PyTorch starts it: variance 1
                    part.weight.normal_(generator=draws)
                case MultiHeadAttention() if part.sinks is not None:
                    part.sinks.normal_(generator=draws)
                case Norm():
                    part.gamma.fill_(1.0)
                    if part.beta is not None:
                        part.beta.zero_()
        if model.keeps_heads:
            for attention in module.attentions():
                nn.init.eye_(attention.output.weight)
    return module.eval().requires_grad_(False)


def _tokenizer(model: UntrainedModel) -> GPT2Subset:
    if model.tokens == "gpt2":
        return GPT2Tokens()
    house = shipped_tokenizer("house-gpt")
    if not isinstance(house, GPT2Subset):
        raise ValueError("The tokenizer of house-gpt is not one of GPT-2's tokens.")
    return house if model.tokens == "house" else GPT2WithEnds(house.kept)
