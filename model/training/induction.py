"""induction: the smallest model in which an induction head forms, within seconds."""

from dataclasses import replace

import numpy as np

from model.nn.config import TransformerConfig
from model.nn.places import head_label
from model.nn.transformer import Transformer
from model.run.tokenizers import WordTokenizer
from model.training import head_scores
from model.training.bigrams import in_context_bigrams
from model.training.recipe import Batch, Evaluation, Gate, Random, Recipe

SYMBOLS = tuple("abcdefghijklmnopqrstuvwxyz123456")
CONTEXT = 48  # symbols of a row
_ROWS = 64
CHECKPOINT_EVERY = 50  # steps of a short recipe


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


def repeat_evaluation(
    module: Transformer, random: Random, symbols: range | tuple[int, ...], *, period: int
) -> Evaluation:
    """Scores on lists that are repeated once: the best induction and previous-token heads, and the
    accuracy with and without the latter."""
    lists = head_scores.said_twice(random, symbols, count=32, period=period)
    weights = head_scores.mean_weights(module, lists)
    inducing, induction = head_scores.best(head_scores.induction(weights, period))
    previous, before = head_scores.best(head_scores.previous_token(weights))
    scores = {
        "induction": induction,
        "previous_token": before,
        "repeat_accuracy": head_scores.repeat_accuracy(module, lists),
        "repeat_accuracy_without_previous_token_head": head_scores.repeat_accuracy(
            module, lists, ablated=[previous]
        ),
    }
    found = {
        "induction": head_label(inducing),
        "previous_token": head_label(previous),
    }
    return Evaluation(scores, found)


def recipe() -> Recipe:
    return Recipe(
        name="induction",
        about="A 2-layer GPT of attention only, in which an induction head forms within seconds.",
        data=(
            "Random rows over 32 symbols. Each draws 6 to 24 symbols and a successor map; the next "
            "symbol is the successor with probability .75. Scored where a pair was already shown."
        ),
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
