"""Every variant trained from several seeds: `python -m model.training experiments`.

What was measured along the way is kept in one file, run by run, so a command that was stopped goes on where
it was.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import torch

from model.loading.shipped import ASSETS
from model.trace.arrays import Wide
from model.training import trainer, variants

NAME = "experiments"  # of the command
RUNS = "experiments.json"  # trained on one processor
BY_PROCESSOR = "experiments_by_processor.json"
SEEDS = (0, 1, 2, 3)
REPEATED = 2  # the seed that was trained with the instructions of other processors too

VariantScores = dict[
    str, float | None
]  # a record of the trainer; None where a run had lost its numbers
Runs = dict[
    str, dict[str, list[VariantScores]]
]  # variant -> seed, or processor -> what was measured


def run(variant: str, seed: int, *, steps: int | None = None) -> list[VariantScores]:
    """What is measured while a variant is trained from a seed. steps: stops after so many."""
    recipe = variants.recipes()[variant]
    trained = trainer.begin(replace(recipe, seed=seed, steps=steps or recipe.steps))
    for _ in trainer.train(trained):
        pass
    return [_rounded(record) for record in trained.history]


def run_all(file: Path, seeds: Mapping[str, int], *, resume: bool) -> Iterator[str]:
    """Trains every variant from every seed and writes the file after each; yields what was done.

    seeds: by the names of their runs in the file. resume: whether the runs that stand there already are left
    as they are.
    """
    runs = read(file) if resume and file.is_file() else {}
    for name, seed in seeds.items():
        for variant in variants.recipes():
            done = runs.setdefault(variant, {})
            if name not in done:
                done[name] = run(variant, seed)
                _write(file, runs)
                yield f"{variant}, seed {seed}"


def files() -> dict[str, dict[str, int]]:
    """The files that this processor writes, each with its seeds by the names of their runs.

    Rounding depends on the processor's instructions, and training magnifies it. PyTorch names them: DEFAULT,
    AVX2 or AVX512, or those of `ATEN_CPU_CAPABILITY`.
    """
    return {
        RUNS: {str(seed): seed for seed in SEEDS},
        BY_PROCESSOR: {torch.backends.cpu.get_cpu_capability(): REPEATED},
    }


@cache
def shipped_runs() -> Runs:
    """The runs that ship with the app."""
    return read(ASSETS / RUNS)


@cache
def runs_by_processor() -> Runs:
    """The shipped runs of the seed `REPEATED`, by the processor's instructions; "" are those of `RUNS`."""
    others = read(ASSETS / BY_PROCESSOR)
    return {
        variant: {"": seeds[str(REPEATED)], **others[variant]}
        for variant, seeds in shipped_runs().items()
    }


def read(file: Path) -> Runs:
    runs: Runs = json.loads(file.read_text(encoding="utf-8"))
    return runs


def curves(runs: Runs, variant: str, measure: str) -> tuple[list[int], Wide]:
    """The steps at which a variant was measured, and the values (run, step), NaN where there is none."""
    histories = list(runs[variant].values())
    measured = [
        [record.get(measure) for record in history if measure in record] for history in histories
    ]
    steps = [int(record["step"] or 0) for record in histories[0] if measure in record]
    return steps, np.array(measured, dtype=np.float64)


@lru_cache(maxsize=64)
def parameters(variant: str) -> int:
    """How many numbers a variant learns."""
    recipe = variants.recipes()[variant]
    with torch.device("meta"):
        module = recipe.build(recipe.config)
    return sum(weight.numel() for weight in module.parameters())


def _write(file: Path, runs: Runs) -> None:
    """A command that is stopped meanwhile leaves the file before."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".partial")
    partial.write_text(json.dumps(runs), encoding="utf-8")
    os.replace(partial, file)


def _rounded(record: trainer.StepRecord) -> VariantScores:
    return {
        name: round(value, 5) if math.isfinite(value) else None for name, value in record.items()
    }
