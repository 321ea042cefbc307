"""What one worker and two make in each engine of profiles, and how long they take to start.

`python -m tests.bench.profiling_engines`: a random model of GPT-2's size, windows of 256 tokens, one thread a
worker. Each row has a process of its own.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench import gpt2_size

WINDOW = 256  # tokens
ENGINES = ("processes", "ray")
WORKERS = (1, 2)
SLICE, SLICES = 4, 8  # windows of one; of each worker, after the first that all of them make


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = gpt2_size.save(Path(scratch))
        for engine in ENGINES:
            for workers in WORKERS:
                command = [sys.executable, "-m", "tests.bench.profiling_engines"]
                command += [str(folder), engine, str(workers)]
                found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                print(found.splitlines()[-1], flush=True)


def measured(folder: str, engine: str, workers: int) -> dict[str, str | float]:
    """A whole run. Start-up: until there are as many slices as workers, less the time that they take."""
    from model.profile import profile, slices
    from model.profile.run import Progress

    slices.SLICE = SLICE
    file = Path(folder).with_name("corpus.txt")
    windows = SLICE * workers * (1 + SLICES)
    file.write_text("\n".join([gpt2_size.text_of(WINDOW)] * windows))
    heard: list[tuple[float, Progress]] = []
    began = time.perf_counter()
    profile(
        folder,
        file,
        by_line=True,
        window=WINDOW,
        workers=workers,
        cluster="local" if engine == "ray" else None,
        told=lambda progress: heard.append((time.perf_counter(), progress)),
    )
    ended = time.perf_counter()
    (warm, first), (last, whole) = heard[workers - 1], heard[-1]
    speed = (whole.tokens - first.tokens) / (last - warm)
    return {
        "engine": engine,
        "workers": workers,
        "tokens_a_second": round(speed),
        "start_up_s": round(warm - began - first.tokens / speed, 1),
        "end_s": round(ended - last, 1),
    }


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measured(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
    else:
        main()
