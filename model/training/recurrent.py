"""The shipped GRU beside the induction model: both learned from the same rows, with as many parameters."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.analysis.stream.recurrence import gradient_by_token, states_by_formula
from model.loading.shipped import ASSETS, load_asset
from model.nn.config import TransformerConfig
from model.nn.recurrent import RecurrentLayers, recurrent
from model.nn.transformer import Transformer
from model.trace.arrays import Array
from model.trace.records import Token
from model.training.induction import CONTEXT, InductionTask, shown_before


@dataclass(frozen=True, eq=False)
class Network:
    """One of the two shipped networks."""

    name: str
    module: Transformer
    parameters: int
    repeat_accuracy: float  # on fresh lists that are said twice, measured when it was shipped


@dataclass(frozen=True, eq=False)
class Beside:
    """What a network does with one text."""

    network: Network
    gradient: Array  # (token,): of the last output's logits by each token's vector
    right: int  # of the tokens that are scored, how many were predicted


@dataclass(frozen=True, eq=False)
class Comparison:
    """A text under both networks."""

    tokens: tuple[Token, ...]
    unread: int  # tokens of the text that the context does not hold
    scored: int  # tokens whose pair with the one before stood earlier in the text
    both: tuple[Beside, Beside]  # attention first
    difference: float  # of the recurrent states from those by the formulas


@cache
def networks() -> tuple[Network, Network]:
    """The induction model and the recurrent network. Raises ValueError for damaged files."""
    return _network("induction", "attention", Transformer), _network("recurrent", "GRU", recurrent)


def _network(folder: str, name: str, build: Callable[[TransformerConfig], Transformer]) -> Network:
    module, _, card = load_asset(ASSETS / folder, build=build)
    count = sum(weight.numel() for weight in module.parameters())
    return Network(name, module, count, card["scores"]["repeat_accuracy"])


def compare(text: str) -> Comparison:
    """Raises ValueError, with a sentence, for a text that the networks cannot read."""
    every = InductionTask.tokenizer.tokens(text)
    if not every:
        raise ValueError("There is no list yet. Type some symbols.")
    tokens = every[:CONTEXT]
    ids = torch.tensor([[token.id for token in tokens]])
    again = shown_before(ids.numpy())[0]
    attention, gru = networks()
    return Comparison(
        tokens,
        len(every) - len(tokens),
        int(again.sum()),
        (_beside(attention, ids, again), _beside(gru, ids, again)),
        _difference(gru.module, ids),
    )


def _beside(network: Network, ids: Tensor, again: NDArray[np.bool_]) -> Beside:
    with torch.inference_mode():
        guessed = network.module(ids)[0, :-1].argmax(-1)
    right = (guessed == ids[0, 1:]).numpy() & again
    return Beside(network, gradient_by_token(network.module, ids), int(right.sum()))


def _difference(module: Transformer, ids: Tensor) -> float:
    if not isinstance(module.decoder, RecurrentLayers):
        raise TypeError("The decoder is not recurrent.")
    with torch.inference_mode():
        vectors = module.embedding(ids, "decoder")
        by_formula = states_by_formula(module.decoder, vectors[0])
        return float((module.decoder(vectors)[0] - by_formula).abs().max())
