"""A class beside hostile sessions: what the honest ones wait, get and lose by them, and how the server ends.

The same honest sessions do the same twice, alone and beside the hostile ones, which work in a process of
their own. SOAK_SECONDS says how long.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import hostile
from bench.cells import Measured, ms, table, times
from bench.classroom import TRACE_MB, lesson, own_sentences, summed
from bench.pupil_answers import Expected, expected_answers
from tests.server import REPOSITORY, serving

HONEST = 45
HOSTILE = len(hostile.KINDS)
SECONDS, SHORT = 600.0, 60.0
BETWEEN_LOOKS = 5.0


def measure(scratch: Path, short: bool) -> dict[str, object]:
    seconds = float(os.environ.get("SOAK_SECONDS", SHORT if short else SECONDS))
    texts = [own_sentences(number) for number in range(HONEST)]
    expected = expected_answers([text for own in texts for text in own])
    runs = [_run(scratch, texts, expected, seconds, beside) for beside in (False, True)]
    facts = {"honest": HONEST, "hostile": HOSTILE, "seconds": seconds, "trace_mb": TRACE_MB}
    return facts | {"runs": runs}


def tabled(measured: Measured) -> str:
    """What was measured, as a table and a sentence."""
    quiet, harried = ({row["act"]: row for row in run["rows"]} for run in measured["runs"])
    rows = [
        (
            act,
            ms(row["median_ms"]),
            ms(row["p95_ms"]),
            ms(harried[act]["median_ms"]),
            ms(harried[act]["p95_ms"]),
            times(harried[act]["p95_ms"] / row["p95_ms"]),
        )
        for act, row in quiet.items()
    ]
    head = ("act", "median alone", "p95 alone", "median beside", "p95 beside", "p95's ratio")
    alone, beside = measured["runs"]
    did = ", ".join(f"{count:,} {what}" for what, count in beside["done"].items())
    words = (
        f"{measured['honest']} honest sessions for {measured['seconds'] / 60:g} minutes, alone and beside "
        f"{measured['hostile']} hostile ones, which did: {did}. Errors of the honest ones: "
        f"{alone['errors']} and {beside['errors']}; answers that were not their own: {alone['mixed_up']} "
        f"and {beside['mixed_up']}. Memory: at most {max(alone['megabytes']):,} and "
        f"{max(beside['megabytes']):,} MB, with {measured['trace_mb']} MB of traces allowed. Ended "
        f"{alone['seconds_to_end']:.1f} and {beside['seconds_to_end']:.1f} s after SIGTERM."
    )
    return f"{table(head, rows)}\n\n{words}"


def _run(
    scratch: Path,
    texts: list[tuple[str, ...]],
    expected: Expected,
    seconds: float,
    beside: bool,
) -> dict[str, object]:
    bound = {"ATTENTION_TRACE_MB": str(TRACE_MB)}
    done: dict[str, int] = {}
    with (
        serving(scratch / "server.log", more=bound) as server,
        _others(server.port, done, beside),
    ):
        found = asyncio.run(lesson(server, texts, expected, seconds, BETWEEN_LOOKS))
        began = time.monotonic()
        server.process.terminate()
        server.process.wait()
        seconds_to_end = time.monotonic() - began
    measured = summed(found, warm_up=0.0) | {"done": done, "seconds_to_end": seconds_to_end}
    print(measured, flush=True)
    return measured


@contextmanager
def _others(port: int, done: dict[str, int], beside: bool) -> Iterator[None]:
    """The hostile sessions, from before the body until after it; `done` is then what each has done."""
    if not beside:
        yield
        return
    with subprocess.Popen(
        [sys.executable, "-m", "bench.hostile", str(port)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
    ) as process:
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            said, _ = process.communicate(timeout=30)
    done.update(json.loads(said))
