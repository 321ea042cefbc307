"""A small attention-only model in which induction heads form. A larger model starts from it.

In a larger model that was trained on text from the start, these heads did not form within hours. In this
one they form in about 600 steps, and the larger model then begins with the same outputs.
"""

from dataclasses import replace

import torch

from model.nn.config import TransformerConfig
from model.nn.transformer import Transformer
from model.run.tokenizers import WordTokenizer
from model.training.induction import InductionTask
from model.training.recipe import Gate, Ids, Recipe
from model.training.trainer import begin, train

WORDS = 64
LAYERS = 2
_SHORT = 48  # tokens a row, until heads have formed
_LONG_FROM = 600  # steps; from here on rows are as long as the context
_STRONG_POSITIONS = 4.0  # at a quarter of this no previous-token head forms in a thousand steps


class SeedlingTask(InductionTask):
    """The same over other words; later rows are as long as the context."""

    def __init__(self, context: int) -> None:
        self.tokenizer = WordTokenizer([str(number) for number in range(WORDS)])
        self._context = context

    def size(self, step: int) -> tuple[int, int]:
        return (40, _SHORT) if step < _LONG_FROM else (8, self._context)


def recipe(config: TransformerConfig) -> Recipe:
    """The seedling of a larger decoder has its width, heads and context, two layers, no feed-forward."""
    return Recipe(
        name="seedling",
        about="A 2-layer GPT of attention only, from which a larger one grows.",
        data="Random rows over 64 words, each with its own successor map.",
        config=replace(config, d_vocab=WORDS, decoder_layers=LAYERS, d_mlp=0),
        task=SeedlingTask(config.n_ctx),
        start=strengthen_positions,
        gates=(Gate("induction", at_least=0.6), Gate("previous_token", at_least=0.8)),
        steps=900,
        rate=1.5e-3,
        seed=4,
    )


def strengthen_positions(module: Transformer) -> None:
    """Makes the learned positions large at the start, so that heads form on them."""
    if module.embedding.positions is None:
        raise ValueError("This model has no learned positions.")
    with torch.no_grad():
        module.embedding.positions.weight.mul_(_STRONG_POSITIONS)


def plant(module: Transformer, words: Ids) -> None:
    """Trains a seedling and copies it into the module, which then has the same output for the first 64
    `words`.

    Layers that the seedling lacks, and all feed-forward layers, add nothing at first.
    """
    run = begin(recipe(module.config), device=str(next(module.parameters()).device))
    for _ in train(run):
        pass
    graft(module, run.module, words)


def graft(module: Transformer, small: Transformer, words: Ids) -> None:
    """Copies the small model's layers, positions and words into the module, in place."""
    state = dict(module.state_dict())
    learned = small.state_dict()
    tokens = state["embedding.tokens.weight"]
    table = learned.pop("embedding.tokens.weight")
    with torch.no_grad():
        tokens.mul_(table.std() / tokens.std())
        tokens[torch.from_numpy(words[:WORDS])] = table
        for name, value in learned.items():
            state[name].copy_(value)
        for name, value in state.items():
            is_new = name.startswith("decoder.blocks.") and int(name.split(".")[2]) >= LAYERS
            if "feed_forward.w_out" in name or (is_new and "attention.output" in name):
                value.zero_()
