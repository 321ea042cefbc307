"""A training run on disk: saved about once a minute, and resumed where it was stopped."""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from model.training import trainer
from model.training.recipe import Recipe
from model.training.trainer import TrainingProgress, TrainingState

SAVE_EVERY = 60.0  # seconds
STATE = "state.safetensors"
FACTS = ("step", "seconds", "history", "recent")  # what is saved of a run beside its tensors
_OPTIMIZER = "optimizer/"


def train(
    run: TrainingState, folder: Path, *, until: float = float("inf")
) -> Iterator[TrainingProgress]:
    """Trains step by step and yields each step.

    Args:
        run: where it goes on.
        folder: where the state is saved, about once a minute and when the run stops.
        until: a time of `time.monotonic()` at which to stop.
    """
    steps, saved = trainer.train(run), time.monotonic()
    try:
        while time.monotonic() < until and (progress := next(steps, None)) is not None:
            if time.monotonic() - saved > SAVE_EVERY:
                save(run, folder)
                saved = time.monotonic()
            yield progress
    finally:
        steps.close()
        save(run, folder)


def save(run: TrainingState, folder: Path) -> None:
    """Writes the whole state in one safetensors file. A run that is killed meanwhile keeps the state
    before."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = run.optimizer.state_dict()
    parts = {"module": run.module.state_dict()}
    parts |= {str(step): weights for step, weights in run.checkpoints.items()}
    parts |= {f"{_OPTIMIZER}{index}": moments for index, moments in kept["state"].items()}
    tensors = {  # clones, because tensors of a file may not share memory
        f"{part}/{name}": value.detach().clone()
        for part, state in parts.items()
        for name, value in state.items()
    }
    facts = {"groups": kept["param_groups"], **{name: getattr(run, name) for name in FACTS}}
    partial = folder / "state.partial"
    save_file(tensors, partial, {"run": json.dumps(facts)})
    os.replace(partial, folder / STATE)


def resume(recipe: Recipe, folder: Path, *, device: str = "cpu") -> TrainingState:
    """The run that was saved in a folder. Raises ValueError if there is none or it does not fit."""
    if not (folder / STATE).is_file():
        raise ValueError(f"There is no saved run of {recipe.name} to go on with.")
    run = trainer.begin(replace(recipe, start=None), device=device)
    run.recipe = recipe
    parts: dict[str, dict[str, Tensor]] = {}
    try:
        with safe_open(folder / STATE, "pt") as opened:
            facts = json.loads(opened.metadata()["run"])
            for name in opened.keys():  # noqa: SIM118 - the file is no mapping
                part, _, rest = name.rpartition("/")
                parts.setdefault(part, {})[rest] = opened.get_tensor(name)
        run.module.load_state_dict(parts.pop("module"))
        moments = {
            int(part.removeprefix(_OPTIMIZER)): parts.pop(part)
            for part in [*parts]
            if part.startswith(_OPTIMIZER)
        }
        run.optimizer.load_state_dict({"state": moments, "param_groups": facts.pop("groups")})
    except (RuntimeError, ValueError, SafetensorError) as error:
        raise ValueError(f"The saved run of {recipe.name} does not fit its recipe.") from error
    for name, value in facts.items():
        setattr(run, name, value)
    run.checkpoints = {int(step): weights for step, weights in parts.items()}
    return run
