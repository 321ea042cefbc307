"""The trainer: losses, rates, and that a run taken up again ends where an unbroken one does."""

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from model.nn.transformer import Transformer
from model.training import induction, trainer
from model.training.recipe import IGNORED, Evaluation, Random, Recipe, learning_rate
from model.training.trainer import TrainingState, batch_loss
from tests.cases import cases
from tools.training import runs, translate


def tiny_decoder(*, width: int = 16, seed: int = 0) -> Recipe:
    recipe = induction.recipe()
    config = replace(recipe.config, d_model=width, heads=2)
    small = {"steps": 8, "warm_up": 2, "checkpoints": (0, 4), "measure_every": 4}
    return replace(recipe, config=config, seed=seed, **small)


class UnexaminedTranslation(translate.TranslateTask):
    """The translator's data, without the minutes that its evaluation takes."""

    def evaluation(self, module: Transformer, random: Random) -> Evaluation:
        return Evaluation({"draw": float(random.random())})


def tiny_translator() -> Recipe:
    recipe = translate.recipe()
    config = replace(recipe.config, d_model=16, heads=2, d_mlp=16)
    small = {"steps": 6, "warm_up": 2, "checkpoints": (), "measure_every": 3}
    return replace(recipe, config=config, task=UnexaminedTranslation(), **small)


def finish(run: TrainingState) -> TrainingState:
    for _ in trainer.train(run):
        pass
    return run


def assert_same_weights(one: Transformer, other: Transformer) -> None:
    others = other.state_dict()
    for name, value in one.state_dict().items():
        assert value.equal(others[name]), name


def test_a_run_taken_up_again_ends_exactly_where_an_unbroken_one_does(
    tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    for recipe in [tiny_decoder(), tiny_translator()]:
        with subtests.test(recipe=recipe.name):
            tmp_path = tmp_path_factory.mktemp("case")
            unbroken = finish(trainer.begin(recipe))
            for progress in runs.train(trainer.begin(recipe), tmp_path):
                if progress.step == 3:
                    break
            resumed = runs.resume(recipe, tmp_path)
            assert resumed.step == 3
            finish(resumed)
            assert_same_weights(resumed.module, unbroken.module)
            assert resumed.history == unbroken.history
            assert resumed.checkpoints.keys() == unbroken.checkpoints.keys()


def test_the_same_recipe_gives_the_same_model_and_another_seed_another() -> None:
    first, again = (finish(trainer.begin(tiny_decoder())) for _ in range(2))
    assert_same_weights(first.module, again.module)
    other = finish(trainer.begin(tiny_decoder(seed=1)))
    table = first.module.embedding.tokens.weight
    assert not table.equal(other.module.embedding.tokens.weight)


def test_training_leaves_the_global_random_state_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    finish(trainer.begin(tiny_translator()))
    assert torch.rand(3).equal(expected)


def test_a_run_that_nobody_asks_on_does_no_further_step() -> None:
    run = trainer.begin(tiny_decoder())
    steps = trainer.train(run)
    assert next(steps).step == 1
    steps.close()
    assert run.step == 1
    assert not run.module.training


def test_a_run_stops_when_its_time_is_up(tmp_path: Path) -> None:
    run = trainer.begin(tiny_decoder())
    assert list(runs.train(run, tmp_path, until=time.monotonic())) == []
    assert runs.resume(run.recipe, tmp_path).step == 0


def test_progress_tells_steps_losses_and_scores() -> None:
    told = list(trainer.train(trainer.begin(tiny_decoder())))
    assert [progress.step for progress in told] == list(range(1, 9))
    assert [progress.step for progress in told if progress.evaluation] == [4, 8]
    assert all(np.isfinite(progress.loss) for progress in told)


def test_history_holds_the_mean_loss_between_two_exams() -> None:
    run = trainer.begin(tiny_decoder())
    losses = [progress.loss for progress in trainer.train(run)]
    assert [record["step"] for record in run.history] == [0, 4, 8]
    assert "loss" not in run.history[0]
    assert run.history[1]["loss"] == pytest.approx(np.mean(losses[:4]))
    assert run.history[2]["loss"] == pytest.approx(np.mean(losses[4:]))


def test_checkpoints_are_the_weights_of_their_step() -> None:
    run = trainer.begin(tiny_decoder())
    untrained = run.module.embedding.tokens.weight.detach().clone()
    finish(run)
    assert sorted(run.checkpoints) == [0, 4]
    kept = run.checkpoints[0]["embedding.tokens.weight"]
    assert kept.equal(untrained.half())
    assert not kept.equal(run.checkpoints[4]["embedding.tokens.weight"])


def test_nothing_to_resume_and_another_models_state_are_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no saved run of induction"):
        runs.resume(tiny_decoder(), tmp_path)
    run = trainer.begin(tiny_decoder())
    runs.save(run, tmp_path)
    wider = tiny_decoder(width=32)
    with pytest.raises(ValueError, match="does not fit"):
        runs.resume(wider, tmp_path)


def test_the_loss_in_chunks_is_cross_entropy_with_its_gradients() -> None:
    recipe = tiny_decoder()
    batch = recipe.task.batch(np.random.default_rng(0), 0)
    chunked, plain = trainer.begin(recipe).module, trainer.begin(recipe).module
    assert int((batch.targets != IGNORED).sum()) > 512  # more than one chunk
    loss = batch_loss(chunked, batch)
    logits = plain(batch.inputs)
    expected = F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten(), ignore_index=IGNORED)
    torch.testing.assert_close(loss, expected)
    loss.backward()
    expected.backward()
    for one, other in zip(chunked.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)


def test_the_loss_of_an_encoder_decoder_does_not_see_padding() -> None:
    recipe = tiny_translator()
    batch = recipe.task.batch(np.random.default_rng(0), 0)
    module = trainer.begin(recipe).module.eval()
    assert batch.padding is not None
    other_filler = batch.source.masked_fill(~batch.padding, 7)
    refilled = replace(batch, source=other_filler)
    assert not other_filler.equal(batch.source)
    torch.testing.assert_close(batch_loss(module, batch), batch_loss(module, refilled))


@cases("schedule", ["constant", "cosine", "trapezoid"])
def test_the_rate_warms_up_and_then_follows_its_schedule(schedule) -> None:
    recipe = replace(
        induction.recipe(), steps=1000, warm_up=100, rate=1.0, schedule=schedule, checkpoints=()
    )
    rates = np.array([learning_rate(recipe, step) for step in range(1000)])
    assert rates[0] == pytest.approx(0.01)
    assert (np.diff(rates[:100]) > 0).all()
    assert rates[99] == pytest.approx(1.0)
    end = {"constant": 1.0, "cosine": 0.0, "trapezoid": 0.005}[schedule]
    assert rates[-1] == pytest.approx(end, abs=1e-4)
    middle = {"constant": 1.0, "cosine": 0.5, "trapezoid": 1.0}[schedule]
    assert rates[550] == pytest.approx(middle)
