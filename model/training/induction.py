"""induction: the smallest model in which an induction head forms, within seconds.

Its rows, whose rule must be found in the row itself; what the heads of a model do on such rows; its recipe.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.analysis.heads import statistics
from model.nn.config import TransformerConfig
from model.nn.intervention import Intervention
from model.nn.places import head_label
from model.nn.recorder import Recorder, recording
from model.nn.transformer import Transformer
from model.run.tokenizers import WordTokenizer
from model.system.words import Words
from model.trace.arrays import Array
from model.training.recipe import IGNORED, Batch, Evaluation, Gate, Ids, Random, Recipe

say = Words("training.induction")

SYMBOLS = tuple("abcdefghijklmnopqrstuvwxyz123456")
CONTEXT = 48  # symbols of a row
_ROWS = 64
CHECKPOINT_EVERY = 50  # steps of a short recipe
# (attention name, head) -> (query, key), mean over a batch
HeadWeights = dict[tuple[str, int], Array]


def in_context_bigrams(
    random: Random, symbols: Ids, *, count: int, length: int, faithful: float = 0.75
) -> tuple[Ids, Ids]:
    """Inputs and targets, both (count, length): each row has 6–24 symbols and its own successor map. A target
    is scored where its pair stood in the row before.

    Args:
        symbols: the ids to choose from.
        faithful: with this probability the next symbol is the current one's successor, else a random one of
            the row.
    """
    sequences = np.stack(
        [_one_sequence(random, symbols, length + 1, faithful) for _ in range(count)]
    )
    return sequences[:, :-1], np.where(shown_before(sequences), sequences[:, 1:], IGNORED)


def _one_sequence(random: Random, symbols: Ids, length: int, faithful: float) -> Ids:
    chosen = random.choice(symbols, random.integers(6, min(24, len(symbols)) + 1), replace=False)
    size = len(chosen)
    successors = random.permutation(size)
    strays, stray = random.integers(size, size=length), random.random(length) >= faithful
    places = np.empty(length, dtype=np.int64)
    places[0] = strays[0]
    for at in range(1, length):
        places[at] = strays[at] if stray[at] else successors[places[at - 1]]
    return chosen[places]


def shown_before(sequences: Ids) -> NDArray[np.bool_]:
    """(count, length): whether the pair (this symbol, next symbol) stands earlier in the row."""
    this, following = sequences[:, :-1], sequences[:, 1:]
    same = (this[:, :, None] == this[:, None]) & (following[:, :, None] == following[:, None])
    return np.tril(same, -1).any(-1)


class InductionTask:
    """Sequences over a few symbols, each with its own successor map."""

    tokenizer = WordTokenizer(SYMBOLS)

    def size(self, step: int) -> tuple[int, int]:
        """The rows of a batch, and the symbols of a row."""
        return _ROWS, CONTEXT

    def batch(self, random: Random, step: int) -> Batch:
        (count, length), symbols = self.size(step), np.arange(self.tokenizer.size)
        return Batch.of(in_context_bigrams(random, symbols, count=count, length=length))

    def evaluation(self, module: Transformer, random: Random) -> Evaluation:
        return repeat_evaluation(module, random, range(self.tokenizer.size), period=CONTEXT // 3)


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


def said_twice(random: Random, symbols: Iterable[int], *, count: int, period: int) -> Tensor:
    """(count, 2 · period): lists of different random symbols, each repeated once.

    Args:
        symbols: the ids to choose from.
        count: lists.
        period: symbols of a list.
    """
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


def repeat_evaluation(
    module: Transformer, random: Random, symbols: range | tuple[int, ...], *, period: int
) -> Evaluation:
    """Scores on 32 lists that are repeated once: the best induction and previous-token heads, and the
    accuracy with and without the latter.

    Args:
        symbols: the ids to choose from.
        period: symbols of a list.
    """
    lists = said_twice(random, symbols, count=32, period=period)
    weights = mean_weights(module, lists)
    inducing, share = best(
        {head: statistics.induction(rows, period) for head, rows in weights.items()}
    )
    previous, before = best(previous_token(weights))
    scores = {
        "induction": share,
        "previous_token": before,
        "repeat_accuracy": repeat_accuracy(module, lists),
        "repeat_accuracy_without_previous_token_head": repeat_accuracy(
            module, lists, ablated=[previous]
        ),
    }
    return Evaluation(
        scores, {"induction": head_label(inducing), "previous_token": head_label(previous)}
    )


def recipe() -> Recipe:
    return Recipe(
        name="induction",
        about=say("2_layer_gpt_attention"),
        data=say("random_rows_over"),
        config=TransformerConfig(
            shape="decoder",
            d_vocab=len(SYMBOLS),
            n_ctx=CONTEXT,
            d_model=64,
            heads=4,
            decoder_layers=2,
        ),
        task=InductionTask(),
        gates=(Gate("induction", at_least=0.85), Gate("previous_token", at_least=0.85)),
        steps=1000,
        rate=3e-3,
        seed=1,
        checkpoints=(0, 100, 200, 300, 400, 600, 1000),
    )


def short_recipe(seed: int, steps: int) -> Recipe:
    """The shipped recipe, cut to so many steps, with a checkpoint every 50 of them.

    Raises ValueError for a seed below 0 and for steps outside 50 to those of the shipped recipe.
    """
    shipped = recipe()
    if seed < 0:
        raise ValueError(f"The seed is {seed}; it must be 0 or more.")
    if not CHECKPOINT_EVERY <= steps <= shipped.steps:
        raise ValueError(
            f"{steps} steps were requested; {CHECKPOINT_EVERY} to {shipped.steps:,} are possible."
        )
    checkpoints = (*range(0, steps, CHECKPOINT_EVERY), steps)
    return replace(shipped, seed=seed, steps=steps, checkpoints=checkpoints)
