"""What `make test` takes: formatting, lint, types and the fast tests, once all is installed."""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from bench.cells import Measured, table
from tests.times import Times, by_group

ROOT = Path(__file__).resolve().parents[1]


def measure(scratch: Path, short: bool) -> Measured:
    """Seconds of processor and of wall by group of tests; types are checked anew. Raises CalledProcessError
    where a test fails. short: only the laws."""
    folder = scratch / "times"
    folder.mkdir()
    settings = {"ATTENTION_TIMES": str(folder), "MYPY_CACHE_DIR": str(scratch / "types")}
    command = ["make", "test", *(["TESTS=tests/laws"] if short else [])]
    begin, before = time.monotonic(), _seconds_of_children()
    subprocess.run(command, cwd=ROOT, env=os.environ | settings, stdout=sys.stderr, check=True)
    wall, processor = time.monotonic() - begin, _seconds_of_children() - before
    times = Times()
    for file in folder.iterdir():  # one for each run of pytest
        times.add(Times(**json.loads(file.read_text())))
    *groups, tests = by_group(times)
    outside = ("formatting, lint and types", 0, max(0.0, processor + times.server - tests[2]), 0.0)
    total = ("all", tests[1], outside[2] + tests[2], wall)
    names = ("group", "items", "processor_s", "wall_s")
    return {
        "rows": [dict(zip(names, row, strict=True)) for row in (*groups, outside, total)],
        "memory_mb": times.memory,
    }


def _seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def tabled(measured: Measured) -> str:
    """A row a group: the wall is that of its workers together, in the last row that of the run."""
    rows = [
        (
            row["group"],
            f"{row['items']:,}" if row["items"] else "",
            f"{row['processor_s']:,.0f} s",
            f"{row['wall_s']:,.0f} s" if row["wall_s"] else "",
        )
        for row in measured["rows"]
    ]
    listed = table(("group", "items", "of a processor", "wall"), rows)
    return f"{listed}\n\nThe largest memory of a worker: {measured['memory_mb']:,} MB."
