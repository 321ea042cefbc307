"""What one worker and two make in each engine of profiles, and how long they take to start.

A random model of GPT-2's size, windows of 256 tokens, one thread a worker. Each run has a process of its own,
and the engines take turns, so that both meet the same machine.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

from bench import gpt2_size
from bench.cells import Measured, table
from bench.quantiles import median

WINDOW, ROUNDS = 256, 2  # tokens; runs of each engine with each number of workers
ENGINES = ("processes", "Ray")
WORKERS = (1, 2)
NUMBERS = ("tokens_a_second", "start_up_s", "end_s")
SLICE, SLICES = 4, 8  # windows of one; of each worker, after the first that all of them make


def measure(scratch: Path, short: bool) -> dict[str, object]:
    folder = gpt2_size.save(scratch)
    found: dict[tuple[str, int], list[Measured]] = {}
    for _ in range(1 if short else ROUNDS):
        for workers in WORKERS:
            for engine in ENGINES:
                found.setdefault((engine, workers), []).append(_run(folder, engine, workers))
    return {"rows": [_row(*of, runs) for of, runs in found.items()]}


def _run(folder: Path, engine: str, workers: int) -> Measured:
    command = [sys.executable, "-m", "bench.profiling_engines", str(folder), engine]
    said = subprocess.run(
        [*command, str(workers)], check=True, capture_output=True, text=True
    ).stdout.splitlines()[-1]
    print(said, flush=True)
    found: Measured = json.loads(said)
    return found


def _row(engine: str, workers: int, runs: list[Measured]) -> Measured:
    numbers = {name: median([run[name] for run in runs]) for name in NUMBERS}
    return {"engine": engine, "workers": workers, "runs": len(runs)} | numbers


def tabled(measured: Measured) -> str:
    """What was measured, as a table, and what Ray costs beside processes."""
    rows = measured["rows"]
    shown = table(
        ("engine", "workers", "tokens a second", "ready after", "ends in"),
        [
            (
                row["engine"],
                row["workers"],
                f"{row['tokens_a_second']:,.0f}",
                f"{row['start_up_s']:.0f} s",
                f"{row['end_s']:.1f} s",
            )
            for row in rows
        ],
    )
    of = {(row["engine"], row["workers"]): row for row in rows}
    said = []
    for workers in WORKERS:
        plain, ray = of["processes", workers], of["Ray", workers]
        pace = ray["tokens_a_second"] / plain["tokens_a_second"]
        later = ray["start_up_s"] - plain["start_up_s"]
        said.append(f"with {workers} its pace is {pace:.2f}× and it is ready {later:.0f} s later")
    return f"{shown}\n\nRay beside processes, by workers: {'; '.join(said)}."


def measured(folder: str, engine: str, workers: int) -> Measured:
    """A whole run. Start-up: until there are as many slices as workers, less the time that they take."""
    from model.profile import profile, slices
    from model.profile.run import RunProgress

    slices.SLICE = SLICE
    file = Path(folder).with_name("corpus.txt")
    windows = SLICE * workers * (1 + SLICES)
    file.write_text("\n".join([gpt2_size.text_of(WINDOW)] * windows))
    heard: list[tuple[float, RunProgress]] = []
    began = time.perf_counter()
    profile(
        folder,
        file,
        by_line=True,
        window=WINDOW,
        workers=workers,
        cluster="local" if engine == "Ray" else None,
        told=lambda progress: heard.append((time.perf_counter(), progress)),
    )
    ended = time.perf_counter()
    (warm, first), (last, whole) = heard[workers - 1], heard[-1]
    speed = (whole.tokens - first.tokens) / (last - warm)
    return {
        "tokens_a_second": round(speed),
        "start_up_s": round(warm - began - first.tokens / speed, 1),
        "end_s": round(ended - last, 1),
    }


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
