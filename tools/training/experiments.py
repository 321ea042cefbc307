"""Every variant trained from several seeds: `python -m tools.training experiments`.

What was measured along the way is kept in one file, run by run, so a command that was stopped goes on where
it was.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import torch

from model.training import trainer
from model.training.claims import BY_PROCESSOR, REPEATED, RUNS, SEEDS, Runs, VariantScores, read
from tools.training import variants

NAME = "experiments"  # of the command


def run(variant: str, seed: int, *, steps: int | None = None) -> list[VariantScores]:
    """What is measured while a variant is trained from a seed. steps: stops after so many."""
    recipe = variants.recipes()[variant]
    trained = trainer.begin(replace(recipe, seed=seed, steps=steps or recipe.steps))
    for _ in trainer.train(trained):
        pass
    first, *others = map(_rounded, trained.history)
    first["parameters"] = sum(weight.numel() for weight in trained.module.parameters())
    return [first, *others]


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
