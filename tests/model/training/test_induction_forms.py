"""The smallest recipe makes the shipped model: its beginning, and how its heads form."""

import pytest
import torch

from model.loading.shipped import ASSETS, checkpoint_file, load_asset
from model.training import induction, trainer
from model.training.trainer import TrainingState

NOISE = 0.01  # another machine adds in another order; by then weights have moved ten times as far


def trained_to(run: TrainingState, step: int) -> None:
    """Takes steps until this one is done."""
    for progress in trainer.train(run):
        if progress.step == step:
            return


def test_the_induction_recipe_begins_as_the_shipped_model_did() -> None:
    """Seed, data, loss, optimizer and evaluation: a change of any shows in the weights or the history."""
    run = trainer.begin(induction.recipe())
    trained_to(run, 100)
    _, _, card = load_asset(ASSETS / "induction")
    assert run.recipe.checkpoints == tuple(card["checkpoints"])
    for step in (0, 100):
        module, _, _ = load_asset(ASSETS / "induction", checkpoint_file(step))
        for name, weight in module.state_dict().items():
            torch.testing.assert_close(
                run.checkpoints[step][name].float(), weight, rtol=0, atol=NOISE
            )
    assert len(run.history) == 2
    for record, shipped in zip(run.history, card["history"], strict=False):
        assert record == pytest.approx(shipped, abs=NOISE)


@pytest.mark.slow
def test_induction_heads_form_within_two_hundred_steps() -> None:
    """From where the shipped model had none yet. That it passes its gates in the end, on fresh data too, is
    held by the tests of the shipped models."""
    module, _, card = load_asset(ASSETS / "induction", checkpoint_file(300))
    run = trainer.begin(induction.recipe())
    run.module.load_state_dict(module.state_dict())
    run.step = 300
    trained_to(run, 500)
    before, after = card["history"][3], run.history[-1]
    assert (before["step"], after["step"]) == (300, 500)
    assert before["induction"] < 0.2
    assert after["induction"] > 0.6
    assert before["previous_token"] < 0.4
    assert after["previous_token"] > 0.6
    assert after["repeat_accuracy"] > 0.9 > after["repeat_accuracy_without_previous_token_head"]
    assert after["loss"] < before["loss"] / 3
