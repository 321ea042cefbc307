"""The tasks of docs/research.md beside the same in TransformerLens: lines, seconds, and how far the numbers
of both lie apart.

Ours are the scripts as they stand in the guide, run with the wheel; theirs stand in `by_transformer_lens`,
written by the same formatter, and load the same weights as a GPT-2 of Hugging Face's library. Each side is
one process, which has imported everything; the two run each task in turn.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

from bench.cells import Measured, seconds, table
from bench.quantiles import median
from bench.recording import OTHERS
from deploy.wheel import build_wheel
from tools.notebook_of_guide import GUIDE

HERE = Path(__file__).parent
TIMES = 5
LARGEST = 1e-4  # between the two, where float32 determines a number
NAMES = {"ours": "ours", "theirs": "TransformerLens"}


def measure(scratch: Path, short: bool) -> dict[str, object]:
    """Raises ValueError where the numbers of a task are not the same."""
    packages, models = scratch / "packages", scratch / "models"
    ZipFile(scratch / build_wheel(str(scratch))).extractall(packages)
    _save_models(models)
    rows = []
    with (
        worker(sys.executable, PYTHONPATH=str(packages)) as first,
        worker(str(OTHERS.absolute())) as second,
    ):
        sides = {"ours": first, "theirs": second}
        scripts = zip(_tasks(), guide_scripts(), counterparts(), strict=True)
        for at, (task, (title, source), theirs) in enumerate(scripts):
            files = {"ours": scratch / f"{at}.py", "theirs": theirs}
            files["ours"].write_text(source, encoding="utf-8")
            jobs = {side: {"script": str(files[side]), "numbers": task[side]} for side in sides}
            row: dict[str, object] = {"task": title} | _measured(
                sides, jobs, scratch / f"runs-{at}", models, 1 if short else TIMES
            )
            row["lines"] = {side: lines_of(file.read_text("utf-8")) for side, file in files.items()}
            rows.append(row)
            print(row, flush=True)
    return {"rows": rows}


def _measured(
    sides: dict[str, "subprocess.Popen[str]"],
    jobs: dict[str, dict[str, str]],
    scratch: Path,
    models: Path,
    times: int,
) -> dict[str, object]:
    """One turn of both that is not timed, which imports, then the others."""
    found: dict[str, list[Measured]] = {side: [] for side in sides}
    for turn in range(times + 1):
        for side, process in sides.items():
            folder = scratch / f"{side}-{turn}"
            folder.mkdir(parents=True)
            for model in models.iterdir():
                (folder / model.name).symlink_to(model)
            found[side].append(_answer(process, jobs[side] | {"folder": str(folder)}))
    numbers = [np.array(found[side][-1]["numbers"]) for side in ("ours", "theirs")]
    apart = float(np.abs(numbers[0] - numbers[1]).max())
    if not apart <= LARGEST:
        raise ValueError(f"The numbers of both lie {apart:.2g} apart: {jobs['theirs']['script']}")
    row: dict[str, object] = {"numbers": len(numbers[0]), "apart": apart}
    for what in ("seconds", "processor_s"):
        row[what] = {side: median([one[what] for one in runs[1:]]) for side, runs in found.items()}
    return row


def guide_scripts() -> list[tuple[str, str]]:
    """Title and source of each script of the guide."""
    return re.findall(
        r"^## (.*?)$.*?```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.M | re.S
    )


def lines_of(source: str) -> int:
    """Those of code: no empty ones, and none that are comments only."""
    lines = (line.strip() for line in source.splitlines())
    return sum(1 for line in lines if line and not line.startswith("#"))


def counterparts() -> list[Path]:
    """The script with TransformerLens of each of them."""
    return [HERE / "by_transformer_lens" / f"{task['script']}.py" for task in _tasks()]


def _tasks() -> list[dict[str, str]]:
    written = (HERE / "tasks.toml").read_text(encoding="utf-8")
    tasks: list[dict[str, str]] = tomllib.loads(written)["task"]
    return tasks


@contextmanager
def worker(python: str, **environment: str) -> "Iterator[subprocess.Popen[str]]":
    """A process that runs scripts: worker.py."""
    process = subprocess.Popen(
        [python, "-P", str(HERE / "worker.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled"} | environment,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _answer(process: "subprocess.Popen[str]", job: dict[str, str]) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    print(json.dumps(job), file=process.stdin, flush=True)
    answer: dict[str, Any] = json.loads(process.stdout.readline())
    return answer


def _save_models(folder: Path) -> None:
    from bench.research.gpt2_files import save_as_gpt2
    from model import load_model
    from model.training.checkpoints import shipped_training_run

    for name in ("house-gpt", "stories"):
        save_as_gpt2(load_model(name), folder / name)
    training = shipped_training_run("induction")
    for step in training.steps:
        save_as_gpt2(training.model(step), folder / "induction" / f"step-{step}")


def tabled(measured: Measured) -> str:
    rows = (
        [
            row["task"],
            *(row["lines"][side] for side in NAMES),
            *(seconds(row["seconds"][side]) for side in NAMES),
            *(seconds(row["processor_s"][side]) for side in NAMES),
            f"{row['numbers']:,}",
            f"{row['apart']:.0e}",
        ]
        for row in measured["rows"]
    )
    head = ["task"]
    for what in ("lines", "time", "of a processor"):
        head += [f"{what}, {name}" for name in NAMES.values()]
    return table([*head, "numbers", "largest difference"], rows)
