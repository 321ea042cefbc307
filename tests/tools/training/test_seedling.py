"""A larger model that grows out of a small one computes the same when it begins."""

from dataclasses import replace

import numpy as np
import torch

from model.nn.config import TransformerConfig
from model.nn.transformer import Transformer
from model.training import trainer
from model.training.recipe import Recipe
from tools.training import runs, seedling

LARGE = TransformerConfig(
    shape="decoder", d_vocab=100, n_ctx=16, d_model=16, heads=2, decoder_layers=4, d_mlp=32
)


def grown() -> tuple[Transformer, Transformer, np.ndarray]:
    """A small model, a large one that begins as it, and the small one's words in the large one."""
    torch.manual_seed(0)
    small = Transformer(seedling.recipe(LARGE).config).eval()
    large = Transformer(LARGE).eval()
    words = np.random.default_rng(0).permutation(LARGE.d_vocab)[: seedling.WORDS]
    seedling.graft(large, small, words)
    return small, large, words


def test_the_grown_model_gives_the_logits_of_the_small_one() -> None:
    small, large, words = grown()
    places = torch.randint(seedling.WORDS, (3, LARGE.n_ctx))
    at = torch.from_numpy(words)
    with torch.inference_mode():
        assert torch.allclose(large(at[places])[..., at], small(places), atol=1e-5)


def test_new_layers_wake_up_in_the_first_steps() -> None:
    """What adds nothing at first still receives a gradient."""
    _, large, words = grown()
    large.train().requires_grad_(True)(torch.from_numpy(words[:8])[None]).logsumexp(
        -1
    ).sum().backward()
    for block in large.decoder.blocks:
        assert block.feed_forward.w_out.weight.grad.abs().max() > 0
        assert block.self_attention.output.weight.grad.abs().max() > 0


def test_a_run_starts_as_its_recipe_says_and_goes_on_without_starting_anew(tmp_path) -> None:
    started = []

    def start(module: Transformer) -> None:
        started.append(module)
        torch.nn.init.zeros_(module.embedding.positions.weight)

    recipe: Recipe = replace(seedling.recipe(LARGE), start=start, steps=3)
    run = trainer.begin(recipe)
    assert not run.module.embedding.positions.weight.any()
    runs.save(run, tmp_path)
    runs.resume(recipe, tmp_path)
    assert len(started) == 1
