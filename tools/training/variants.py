"""Small models that differ from one base in one thing each, and the recipes that train them.

The base is a decoder of four layers that reads micro-stories. Its variants lack a part, have another size,
or learn from few rows again and again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from torch import Tensor, nn

from model.nn.config import TransformerConfig
from model.nn.intervention import Intervention
from model.nn.layers import Block, Norm
from model.nn.recorder import current
from model.nn.transformer import Transformer
from model.run.tokenizers import GPT2Subset
from model.training.recipe import Batch, Evaluation, Random, Recipe
from model.training.trainer import batch_loss
from tools.training import recurrent
from tools.training.stories import StoriesTask, story_row

LENGTH = 64  # tokens of a row
ROWS = 8  # of a batch
HELD_OUT_ROWS = 64
HELD_OUT_SEED = 3_000_003  # the same held-out rows for every variant and seed
FEW_ROWS = 32
FEW_SEED = 3_000_004
FAST = 1e-2  # a rate five times the base's


@dataclass(frozen=True)
class StoryRows:
    """Rows of micro-stories: fresh ones at each step, or the same few again and again."""

    few: int = 0  # rows to learn from; 0: fresh rows at each step

    def batch(self, random: Random, step: int) -> Batch:
        if not self.few:
            return self._drawn(random, ROWS)
        chosen = random.choice(self.few, ROWS, replace=False)
        return Batch(self._learned.inputs[chosen], self._learned.targets[chosen])

    def evaluation(self, module: Transformer, random: Random) -> Evaluation:
        """The loss on rows drawn for this alone and, where few are learned from, on these without dropout."""
        scores = {"held_out_loss": batch_loss(module, self._held_out).item()}
        if self.few:
            scores["training_loss"] = batch_loss(module, self._learned).item()
        return Evaluation(scores)

    @cached_property
    def tokenizer(self) -> GPT2Subset:
        return StoriesTask().tokenizer

    @cached_property
    def _held_out(self) -> Batch:
        return self._drawn(np.random.default_rng(HELD_OUT_SEED), HELD_OUT_ROWS)

    @cached_property
    def _learned(self) -> Batch:
        return self._drawn(np.random.default_rng(FEW_SEED), self.few)

    def _drawn(self, random: Random, count: int) -> Batch:
        rows = np.stack([story_row(self.tokenizer, random, LENGTH + 1) for _ in range(count)])
        return Batch.of((rows[:, :-1], rows[:, 1:]))


class WithoutShortcut(Block):
    """A block whose sub-layers replace the stream: f(norm(x)) instead of x + f(norm(x))."""

    def _sum(self, x: Tensor, norm: Norm, written: Tensor) -> Tensor:
        return current().stream(self.stack, self.dropout(written))


def without_shortcuts(config: TransformerConfig) -> Transformer:
    """A decoder with the weights that it would have with shortcuts."""
    module = Transformer(config)
    if module.decoder is None:
        raise ValueError("This model has no decoder.")
    for layer, block in enumerate(module.decoder.blocks):
        bare = WithoutShortcut(config, "decoder", layer)
        bare.load_state_dict(block.state_dict())
        module.decoder.blocks[layer] = bare
    return module


def without_norms(config: TransformerConfig) -> Transformer:
    """A transformer whose norms, the final one too, let every vector pass as it is."""
    module = Transformer(config)
    for part in list(module.modules()):
        for name, child in list(part.named_children()):
            if isinstance(child, Norm):
                setattr(part, name, nn.Identity())
    return module


def _base() -> Recipe:
    task = StoryRows()
    return Recipe(
        name="base",
        about="A 4-layer GPT, 64 wide, with pre-norm and a feed-forward four times as wide.",
        data="Micro-stories from a grammar, fresh ones at every step.",
        config=TransformerConfig(
            shape="decoder",
            d_vocab=task.tokenizer.size,
            n_ctx=LENGTH,
            d_model=64,
            heads=4,
            decoder_layers=4,
            d_mlp=256,
        ),
        task=task,
        gates=(),
        steps=300,
        rate=2e-3,
        warm_up=30,
        measure_every=30,
    )


def _sized(base: Recipe, **sizes: Any) -> Recipe:
    return replace(base, config=replace(base.config, **sizes))


def _few_rows(base: Recipe, dropout: float) -> Recipe:
    sized = _sized(base, decoder_layers=2, dropout=dropout, attention_dropout=dropout)
    return replace(sized, task=StoryRows(FEW_ROWS), steps=400, measure_every=40)


@cache
def recipes() -> Mapping[str, Recipe]:
    """The recipe of each variant."""
    base = _base()
    one_head = _sized(base, heads=1)
    post = _sized(base, norm_place="post")
    shorter: dict[str, Any] = {"steps": 600, "measure_every": 50}
    made = {
        "base": base,
        "no norm": replace(base, build=without_norms),
        "no shortcut": replace(base, build=without_shortcuts),
        "one head": one_head,
        "one head, no scaling": replace(one_head, intervention=Intervention(scale=1.0)),
        "post-norm": post,
        "fast": replace(base, rate=FAST),
        "no norm, 8 layers": replace(_sized(base, decoder_layers=8), build=without_norms),
        "post-norm, fast": replace(post, rate=FAST),
        **{f"{layers} layers": _sized(base, decoder_layers=layers) for layers in (1, 2, 8)},
        **{
            f"width {width}": _sized(base, d_model=width, d_mlp=4 * width)
            for width in (16, 32, 128)
        },
        **{f"inner width {inner}": _sized(base, d_mlp=inner) for inner in (0, 64, 512)},
        **{f"few rows, dropout {share}": _few_rows(base, share) for share in (0.0, 0.2)},
        "attention": replace(recurrent.attention_recipe(), **shorter),
        "recurrent": replace(recurrent.recipe(), **shorter),
    }
    return {name: replace(recipe, name=name) for name, recipe in made.items()}
