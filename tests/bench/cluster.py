"""Models on a cluster beside models in the app: clicks with 1, 10 and 50 sessions, the memory of the app, and
what one pass costs more. The cluster is two machines on this computer."""

import asyncio
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from model.serving.engine import Engine, Request
from tests.bench.cells import Measured, ms, table
from tests.bench.quantiles import median, p95
from tests.bench.server import serving
from tests.bench.sessions import SECONDS, SESSIONS, sentence, together
from tests.on_cluster import two_machines

MODEL = "house-gpt"
LONG = 120  # tokens of the longer text
PASSES, WARM = 40, 4
READS = {
    "a new pass": lambda trace: trace.attention[0].heads,
    "… and what the explorer shows of a layer": lambda trace: trace.attention[3].weights(0),
    "… and the logits of the last token": lambda trace: trace.logits[-1],
}


def measure(scratch: Path, short: bool) -> dict[str, object]:
    seconds, passes = (4, 5) if short else (SECONDS, PASSES)
    with two_machines() as settings:
        rows = [
            {"models": where} | row
            for where, more in (("in the app", {}), ("on a cluster", settings))
            for row in _clicks(scratch, more, seconds)
        ]
        overhead = _overhead(settings["ATTENTION_CLUSTER"], passes)
    return {"rows": rows, "passes": overhead}


def tabled(measured: Measured) -> str:
    """Both tables."""
    clicks = [
        (
            row["sessions"],
            row["models"],
            f"{row['runs_a_second']:.0f}",
            ms(row["median_ms"]),
            ms(row["p95_ms"]),
            ms(row["head_median_ms"]),
            ms(row["mask_median_ms"]),
            row["failed"],
            f"{row['app_mb']:,.0f} MB",
        )
        for row in measured["rows"]
    ]
    head = "sessions, models, runs a second, median, p95, head, mask, failed, memory of the app"
    passes = [
        (
            row["tokens"],
            row["read"],
            *map(ms, (row["here_ms"], row["there_ms"], row["there_p95_ms"])),
        )
        for row in measured["passes"]
    ]
    titles = ("tokens", "asked", "in the app", "on a cluster", "p95 there")
    return f"{table(head.split(', '), sorted(clicks))}\n\n{table(titles, passes)}"


def _clicks(scratch: Path, more: dict[str, str], seconds: float) -> list[dict[str, object]]:
    with serving(scratch / "server.log", more=more) as server:
        rows = []
        for count in SESSIONS:
            rows.append(asyncio.run(together(server, count, seconds)) | {"app_mb": server.memory})
            print(rows[-1], flush=True)
        return rows


def _overhead(address: str, passes: int) -> list[dict[str, object]]:
    """Both engines in turn, each with texts that neither has seen."""
    from model.serving.cluster.cluster_engine import ClusterEngine

    engines = Engine(), ClusterEngine(address)
    rows: list[dict[str, object]] = []
    room = itertools.count()
    for length in (13, LONG):
        for name, read in READS.items():
            asked = [_request(next(room), length) for _ in range(passes)]
            here, there = ([_timed(one, request, read) for request in asked] for one in engines)
            row = {"read": name, "tokens": length}
            here, there = here[WARM:] or here, there[WARM:] or there
            rows.append(
                row
                | {"here_ms": median(here), "there_ms": median(there), "there_p95_ms": p95(there)}
            )
            print(rows[-1], flush=True)
    return rows


def _request(number: int, tokens: int) -> Request:
    """A text that no other request has, of about so many tokens."""
    words = f"Room {number}: " + " ".join(sentence(number + n) for n in range(tokens))
    return Request(MODEL, " ".join(words.split()[:tokens]))


def _timed(engine: Engine, request: Request, read: Callable[[Any], object]) -> float:
    """Milliseconds of a pass, and of what is read of it."""
    began = time.perf_counter()
    read(engine.trace(request, lambda place: None))
    return (time.perf_counter() - began) * 1000
