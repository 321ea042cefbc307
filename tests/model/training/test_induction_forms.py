"""From nothing to an induction head: the smallest recipe, whole, on one core in half a minute."""

from pathlib import Path

import pytest

from model.loading.shipped import ASSETS, load_asset
from model.training import induction, publishing, trainer

NOISE = 0.05  # another machine adds in another order, and a thousand steps make more of it


@pytest.mark.timeout(600)  # half a minute on a free core
def test_the_induction_recipe_reaches_its_gates_from_nothing(tmp_path: Path) -> None:
    run = trainer.begin(induction.recipe())
    for _ in trainer.train(run):
        pass
    evaluation = publishing.publish(run, tmp_path)
    assert evaluation.scores["repeat_accuracy"] > 0.95
    shipped = load_asset(ASSETS / "induction")[2]["scores"]
    for score in ("induction", "previous_token", "repeat_accuracy"):
        assert evaluation.scores[score] == pytest.approx(shipped[score], abs=NOISE)
    losses = {record["step"]: record["loss"] for record in run.history if "loss" in record}
    assert losses[1000] < losses[200] / 3
    assert run.history[0]["induction"] < 0.1
    module, _, card = load_asset(tmp_path / "induction")
    assert module.config == run.recipe.config
    assert tuple(card["checkpoints"]) == (0, 100, 200, 300, 400, 600, 1000)
