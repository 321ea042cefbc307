"""The gates: a model that misses one is refused with a sentence, and nothing is written."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from model.loading.shipped import checkpoint_file, load_asset
from model.training import induction, trainer
from model.training.recipe import Gate, Recipe
from model.training.trainer import TrainingState
from tests.cases import cases
from tools.training import __main__ as command
from tools.training import publishing
from tools.training.publishing import GateError


def short_recipe(*gates: Gate) -> Recipe:
    recipe = replace(induction.recipe(), steps=2, checkpoints=(0, 2), measure_every=1)
    return replace(recipe, gates=gates)


def trained(*gates: Gate) -> TrainingState:
    run = trainer.begin(short_recipe(*gates))
    list(trainer.train(run))
    return run


def test_an_untrained_model_misses_the_gates_of_its_recipe(tmp_path: Path) -> None:
    run = trained(*induction.recipe().gates)
    with pytest.raises(GateError, match=r"induction is 0\.\d+; it must be ≥"):
        publishing.publish(run, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_refused_model_leaves_the_one_shipped_before_alone(tmp_path: Path) -> None:
    publishing.publish(trained(), tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(GateError):
        publishing.publish(trained(Gate("induction", at_least=0.99)), tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@cases("scores", [{}, {"induction": math.nan}, {"induction": 0.84}])
def test_a_score_that_is_missing_or_nan_or_too_low_fails(scores) -> None:
    assert Gate("induction", at_least=0.85).failure(scores) is not None


def test_bounds_hold_on_the_side_they_name() -> None:
    assert Gate("loss", at_most=4.0).failure({"loss": 3.9}) is None
    failure = Gate("loss", at_most=4.0).failure({"loss": 4.1})
    assert re.fullmatch(r"loss .* 4\.1000.* ≤ 4\.", failure)
    assert Gate("match", at_least=0.9).failure({"match": 0.9}) is None


def test_a_published_model_loads_with_its_card_history_and_checkpoints(tmp_path: Path) -> None:
    run = trained(Gate("induction", at_least=0.0))
    evaluation = publishing.publish(run, tmp_path)
    folder = tmp_path / "induction"
    module, tokenizer, card = load_asset(folder)
    assert tokenizer.description() == run.recipe.task.tokenizer.description()
    for name, value in publishing.shipped(run.module).state_dict().items():
        assert value.equal(module.state_dict()[name]), name
    untrained, _, _ = load_asset(folder, checkpoint_file(0))
    table = "embedding.tokens.weight"
    assert not untrained.state_dict()[table].equal(module.state_dict()[table])
    assert card["steps"] == 2
    assert card["checkpoints"] == [0, 2]
    assert [record["step"] for record in card["history"]] == [0, 1, 2]
    assert card["scores"] == {name: round(score, 4) for name, score in evaluation.scores.items()}
    assert json.loads((folder / "card.json").read_text(encoding="utf-8")) == card
    assert (
        f"| induction | {card['scores']['induction']} | ≥ 0 |" in (folder / "CARD.md").read_text()
    )


def test_gates_are_measured_on_other_data_than_the_exams_along_the_way() -> None:
    run = trained()
    recipe, module = run.recipe, publishing.shipped(run.module)
    seeds = (recipe.seed + trainer.EVALUATION_SEED, recipe.seed + publishing.GATE_SEED)
    along, gate = (trainer.evaluate(recipe, module, seed=seed).scores for seed in seeds)
    assert along != gate


def test_the_command_stops_in_time_resumes_and_refuses_a_bad_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "ASSETS", tmp_path / "assets")
    assert command.main(["induction", "--device", "cpu", "--hours", "0"]) == 0
    assert "Stopped at step 0" in capsys.readouterr().out
    assert command.main(["induction", "--device", "cpu", "--resume", "--hours", "0"]) == 0
    assert command.main(["induction", "--device", "cpu", "--publish"]) == 1
    assert induction.recipe().gates[0].bound in capsys.readouterr().err
    assert not (tmp_path / "assets").exists()
    assert command.main(["stories", "--device", "cpu", "--resume"]) == 1
    assert "stories" in capsys.readouterr().err
