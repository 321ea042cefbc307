"""What the heads of a model do, measured on new sequences."""

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from model.analysis.heads import statistics
from model.nn.intervention import Intervention
from model.nn.recorder import Recorder, recording
from model.nn.transformer import Transformer
from model.trace.arrays import Array
from model.training.recipe import Random

HeadWeights = dict[
    tuple[str, int], Array
]  # (attention name, head) -> (query, key), mean over a batch


def mean_weights(module: Transformer, *inputs: Tensor) -> HeadWeights:
    """The weights of every head, averaged over the sequences of a batch of equal lengths."""
    recorder = Recorder(level="attention", explicit=True, source=module.config.source)
    with recording(recorder), torch.inference_mode():
        module(*inputs)
    return {
        (attention.place.name, head): weights
        for attention in recorder.attention
        for head, weights in enumerate(attention.steps["weights"].mean(0).cpu().numpy())
    }


def best(scores: dict[tuple[str, int], float]) -> tuple[tuple[str, int], float]:
    """The head with the highest score, and the score."""
    winner = max(scores, key=lambda head: scores[head])
    return winner, scores[winner]


def previous_token(weights: HeadWeights) -> dict[tuple[str, int], float]:
    """How much of its weight each head puts on the token before."""
    return {head: statistics.at_offset(rows, -1) for head, rows in weights.items()}


def induction(weights: HeadWeights, period: int) -> dict[tuple[str, int], float]:
    """How much of its weight each head puts on the token that followed last time, in lists of `period` tokens
    that are repeated once."""
    return {head: statistics.induction(rows, period) for head, rows in weights.items()}


def said_twice(random: Random, symbols: Iterable[int], *, count: int, period: int) -> Tensor:
    """(count, 2 * period): lists of different random symbols, each repeated once."""
    pool = np.fromiter(symbols, dtype=np.int64)
    lists = np.stack([random.choice(pool, period, replace=False) for _ in range(count)])
    return torch.from_numpy(np.concatenate([lists, lists], axis=1))


def repeat_accuracy(
    module: Transformer, lists: Tensor, *, ablated: Iterable[tuple[str, int]] = ()
) -> float:
    """How often the repeated half of such lists is predicted, from its second token on."""
    intervention = Intervention(ablated=frozenset(ablated))
    with recording(Recorder(intervention, source=module.config.source)), torch.inference_mode():
        guessed = module(lists).argmax(-1)
    period = lists.shape[1] // 2
    right = guessed[:, period:-1] == lists[:, period + 1 :]
    return float(right.float().mean())
