"""Trains one of the shipped models, or all runs of the experiments: `python -m tools.training NAME`."""

import argparse
import shutil
import signal
import sys
import time
from pathlib import Path

import torch

from model.loading.shipped import ASSETS
from model.training import induction, trainer
from model.training.recipe import Recipe
from model.training.trainer import TrainingProgress, TrainingState
from tools.training import experiments, house, publishing, recurrent, runs, stories, translate

WORK = Path(".training")
RECIPES = {
    "induction": induction.recipe,
    "stories": stories.recipe,
    "translate-en-fr": translate.recipe,
    "house-gpt": house.recipe,
    "recurrent": recurrent.recipe,
}


def main(arguments: list[str] | None = None) -> int:
    """0 when the model was published or the run stopped in time, 1 when it may not be shipped."""
    options = _parser().parse_args(arguments)
    torch.set_num_threads(options.threads)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("Stopped; go on with --resume."))
    if options.name == experiments.NAME:
        return _experiments(resume=options.resume)
    folder = WORK / options.name
    try:
        recipe = RECIPES[options.name]()
        run = _run(recipe, folder, options)
        if not options.publish:
            _train(run, folder, hours=options.hours)
            if run.step < recipe.steps:
                print(
                    f"Stopped at step {run.step}. Go on with --resume, or --publish what there is."
                )
                return 0
        publishing.publish(run, ASSETS)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{options.name} passed its gates and was written to {ASSETS / options.name}.")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.training", description=__doc__)
    parser.add_argument("name", choices=(*RECIPES, experiments.NAME))
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--resume", action="store_true", help="go on with the saved run")
    parser.add_argument("--publish", action="store_true", help="publish the saved run as it is")
    parser.add_argument("--hours", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--threads", type=int, default=1)
    return parser


def _experiments(*, resume: bool) -> int:
    """resume: only what neither an earlier command nor the shipped files hold."""
    for name, seeds in experiments.files().items():
        file, shipped = WORK / name, ASSETS / name
        if resume and shipped.is_file() and not file.is_file():
            file.parent.mkdir(exist_ok=True)
            shutil.copyfile(shipped, file)
        for done in experiments.run_all(file, seeds, resume=resume):
            print(done, flush=True)
        shutil.copyfile(file, shipped)
        print(f"All runs were written to {shipped}.")
    return 0


def _run(recipe: Recipe, folder: Path, options: argparse.Namespace) -> TrainingState:
    has_cuda = torch.cuda.is_available()
    device = ("cuda" if has_cuda else "cpu") if options.device == "auto" else options.device
    if options.resume or options.publish:
        return runs.resume(recipe, folder, device=device)
    return trainer.begin(recipe, device=device)


def _train(run: TrainingState, folder: Path, *, hours: float) -> None:
    until = time.monotonic() + hours * 3600
    shown = 0.0
    for progress in runs.train(run, folder, until=until):
        if progress.evaluation or time.monotonic() - shown > 5:
            print(_line(run, progress), flush=True)
            shown = time.monotonic()


def _line(run: TrainingState, progress: TrainingProgress) -> str:
    left = (run.recipe.steps - run.step) * run.seconds / run.step
    minutes, seconds = divmod(round(left), 60)
    line = f"step {progress.step} of {run.recipe.steps}, loss {progress.loss:.3f}, "
    line += f"{minutes} min {seconds:02d} s left"
    if progress.evaluation is None:
        return line
    scores = ", ".join(f"{name} {value:.3f}" for name, value in progress.evaluation.scores.items())
    return f"{line}\n  {scores}"


if __name__ == "__main__":
    raise SystemExit(main())
