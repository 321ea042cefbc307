"""The shipped runs of the experiments: what a run anew gives, and that a variant differs as its name says."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from model.nn.layers import Norm
from model.nn.transformer import Transformer
from model.training import claims, trainer
from tools.training import experiments, variants

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("variant", ["width 16", "one head, no scaling", "few rows, dropout 0.2"])
def test_a_run_anew_measures_what_the_file_says(variant: str) -> None:
    """The loss before training is determined by float32, to five decimals. Afterwards a processor's rounding
    is magnified at every step: a new one ends as near as those of the file, which are a sample of three."""
    seed = claims.REPEATED
    shipped = list(claims.runs_by_processor()[variant].values())
    begun, trained = experiments.run(variant, seed, steps=int(shipped[0][1]["step"]))
    assert begun == pytest.approx(shipped[0][0], abs=2e-5)
    for measure, value in trained.items():
        sample = [run[1][measure] for run in shipped]
        apart = max(sample) - min(sample)
        assert value == pytest.approx(np.mean(sample), abs=2e-4 + 3 * apart)


def test_the_file_holds_every_variant_from_every_seed_to_its_last_step() -> None:
    runs = claims.shipped_runs()
    assert runs.keys() == variants.recipes().keys()
    for variant, recipe in variants.recipes().items():
        assert tuple(map(int, runs[variant])) == claims.SEEDS
        assert {history[-1]["step"] for history in runs[variant].values()} == {recipe.steps}
    assert (claims.ASSETS / claims.RUNS).stat().st_size < 300_000


def test_one_seed_of_every_variant_was_trained_with_the_same_kinds_of_instructions() -> None:
    runs = claims.runs_by_processor()
    assert runs.keys() == variants.recipes().keys()
    for by_processor in runs.values():
        assert list(by_processor) == ["", "DEFAULT", "AVX512"]
        first, *others = by_processor.values()
        for other in others:
            assert [record["step"] for record in other] == [record["step"] for record in first]
            assert other[0] == pytest.approx(first[0], abs=2e-5)  # before training


def test_a_variant_differs_from_the_base_in_the_part_that_it_names() -> None:
    made = {name: trainer.begin(recipe).module for name, recipe in variants.recipes().items()}
    for name, module in made.items():
        count = sum(weight.numel() for weight in module.parameters())
        assert claims.parameters(claims.shipped_runs(), name) == count, name
    base = made["base"]
    assert not [part for part in made["no norm"].modules() if isinstance(part, Norm)]
    assert_same_weights(made["no norm"], base)
    assert_same_weights(made["no shortcut"], base)
    bare = made["no shortcut"].decoder
    x = torch.randn(1, 5, 64, generator=torch.Generator().manual_seed(0))
    block = base.decoder.blocks[0]
    attended = block.self_attention(block.self_norm(x))
    added = block.feed_forward(block.feed_forward_norm(attended))
    torch.testing.assert_close(bare.blocks[0](x), added)
    torch.testing.assert_close(block(x), x + attended + block.feed_forward(
        block.feed_forward_norm(x + attended)
    ))  # fmt: skip


def assert_same_weights(one: Transformer, other: Transformer) -> None:
    """Of those that the first has."""
    others = other.state_dict()
    for name, value in one.state_dict().items():
        assert value.equal(others[name]), name


def test_scores_that_are_not_scaled_give_another_loss_from_the_same_weights() -> None:
    module, losses = trainer.begin(variants.recipes()["one head"]).module, []
    for name in ("one head", "one head, no scaling"):
        recipe = variants.recipes()[name]
        losses.append(trainer.evaluate(recipe, module, seed=0).scores["held_out_loss"])
    doubled = copy.deepcopy(module)  # √64 = 8 times the scores by hand
    with torch.no_grad():
        for attention in doubled.attentions():
            attention.query.weight.mul_(8)
            attention.query.bias.mul_(8)
    by_hand = trainer.evaluate(variants.recipes()["one head"], doubled, seed=0)
    assert losses[0] != pytest.approx(losses[1], abs=1e-4)
    assert by_hand.scores["held_out_loss"] == pytest.approx(losses[1], abs=1e-4)


def test_few_rows_are_the_same_at_every_step_and_none_of_them_is_held_out() -> None:
    task = variants.recipes()["few rows, dropout 0.0"].task
    drawn = [task.batch(np.random.default_rng(step), step).inputs.tolist() for step in range(30)]
    rows = {tuple(row) for batch in drawn for row in batch}
    assert len(rows) <= variants.FEW_ROWS
    assert not rows & {tuple(row) for row in task._held_out.inputs.tolist()}


def test_a_command_that_was_stopped_goes_on_with_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[tuple[str, int]] = []

    def run(variant: str, seed: int) -> list[claims.VariantScores]:
        begun.append((variant, seed))
        return [{"step": 0.0, "held_out_loss": 1.0}]

    monkeypatch.setattr(experiments, "run", run)
    file = tmp_path / "runs" / claims.RUNS
    seeds = experiments.files()[claims.RUNS]
    every = [(name, seed) for seed in claims.SEEDS for name in variants.recipes()]
    stopped = experiments.run_all(file, seeds, resume=False)
    assert [next(stopped) for _ in range(3)] == [f"{name}, seed 0" for name, _ in every[:3]]
    assert len(list(experiments.run_all(file, seeds, resume=True))) == len(every) - 3
    assert begun == every
    assert json.loads(file.read_text("utf-8")) == claims.read(file)
