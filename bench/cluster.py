"""Models on a cluster beside models in the app: clicks with 1, 10 and 50 sessions, the memory of the app, and
what one pass costs more. The cluster is two machines on this computer."""

import asyncio
import itertools
import time
from collections.abc import Callable
from math import ceil, floor
from pathlib import Path
from textwrap import fill
from typing import Any

import torch

from bench.cells import Measured, ms, table
from bench.classroom import THINK
from bench.quantiles import median, p95
from bench.sessions import SECONDS, SESSIONS, sentence, together
from model import load_model
from model.serving.engine import Engine, Request
from tests.server import megabytes_of, serving
from tools.on_cluster import two_machines

IN_APP, ON_CLUSTER = "in the app", "on a cluster"
MODEL, LARGE = "house-gpt", "smollm2-135m-instruct"
TEXT = "The capital of France is"
LEARNERS, BUSIEST = (30, 300, 3000), SESSIONS[-1]
SHARE = 0.5  # of the time for which a core is busy
TOKENS, LONG = 13, 120  # of a text, and of a longer one
TOGETHER = 8  # texts that wait at the same time
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
            for where, more in ((IN_APP, {}), (ON_CLUSTER, settings))
            for row in _clicks(scratch, more, seconds)
        ]
        from model.serving.cluster.cluster_engine import ClusterEngine

        cluster = ClusterEngine(settings["ATTENTION_CLUSTER"])
        overhead = _overhead(cluster, passes)
        cluster.trace(Request(LARGE, TEXT), lambda place: None)
        actors = {one.model: megabytes_of(one.process) for one in cluster.loads()}
    batches = [_batches(name, min(passes, TOGETHER)) for name in (MODEL, LARGE)]
    return {"rows": rows, "passes": overhead, "actors_mb": actors, "batches": batches}


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
    actors = ", ".join(f"{name} {held:,.0f} MB" for name, held in measured["actors_mb"].items())
    together = [
        (row["model"], *map(ms, (row["alone_ms"], row["batch_ms"], row["recorded_ms"])))
        for row in measured["batches"]
    ]
    plain = f"{TOGETHER} plain passes, one after another"
    columns = ("model", plain, "as one batch", "recorded and checked, one after another")
    tables = (
        table(head.split(", "), sorted(clicks)),
        table(titles, passes),
        table(columns, together),
    )
    return "\n\n".join((*tables, f"The process of a model holds, after these passes: {actors}."))


def sizing(measured: Measured) -> str:
    """What a class, a school and a large course need, reckoned from what was measured."""
    row = next(
        row for row in measured["rows"] if (row["models"], row["sessions"]) == (ON_CLUSTER, BUSIEST)
    )
    acts = row["runs_a_second"] / measured["machine"]["cores"]
    every = sum(THINK) / 2
    rows = []
    for learners in LEARNERS:
        replicas = max(2, ceil(learners / BUSIEST) + 1)
        rows.append(
            (
                f"{learners:,}",
                f"{learners / every:,.0f}",
                f"{ceil(learners / every / (acts * SHARE)):,}",
                replicas,
                f"{replicas * row['app_mb'] / 1000:,.1f} GB",
            )
        )
    held = max(measured["actors_mb"].values()) / 1000
    words = (
        f"One core answers {acts:.0f} acts a second, app and model together ({BUSIEST} sessions without a "
        f"pause, docs/bench). Here each learner does something every {every:g} seconds, and cores are busy "
        f"for {SHARE:.0%} of the time. The models need memory of their own, once for all replicas: {LARGE}'s "
        f"process holds {held:.1f} GB with its traces. On a GPU of 80 GB there is room for "
        f"{floor(0.9 * 80 / held)} such models by their bytes; no GPU was measured."
    )
    head = (
        "learners",
        "acts a second",
        "cores, app and models",
        "replicas",
        "memory of the replicas",
    )
    return f"{table(head, rows)}\n\n{fill(words, 110)}"


def _clicks(scratch: Path, more: dict[str, str], seconds: float) -> list[dict[str, object]]:
    with serving(scratch / "server.log", more=more) as server:
        rows = []
        for count in SESSIONS:
            rows.append(asyncio.run(together(server, count, seconds)) | {"app_mb": server.memory})
            print(rows[-1], flush=True)
        return rows


def _overhead(cluster: Engine, passes: int) -> list[dict[str, object]]:
    """Both engines in turn, each with texts that neither has seen."""
    engines = Engine(), cluster
    rows: list[dict[str, object]] = []
    room = itertools.count()
    for length in (TOKENS, LONG):
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


def _batches(name: str, passes: int) -> dict[str, object]:
    """Texts of one length, in the order in which they are asked for and as one batch; and what a visitor
    waits for, passes that are recorded and checked."""
    model = load_model(name)
    texts = [_request(number, TOKENS).text for number in range(TOGETHER)]
    ids = torch.tensor([[token.id for token in model.tokens(text)][:TOKENS] for text in texts])

    def alone() -> object:
        return [model.module(ids[n : n + 1]) for n in range(TOGETHER)]

    def recorded() -> object:
        traces = [model.trace(text) for text in texts]
        return [trace.check() for trace in traces]

    ways = {"alone_ms": alone, "batch_ms": lambda: model.module(ids), "recorded_ms": recorded}
    times: dict[str, list[float]] = {way: [] for way in ways}
    with torch.inference_mode():
        for _ in range(passes):
            for way, run in ways.items():
                began = time.perf_counter()
                run()
                times[way].append((time.perf_counter() - began) * 1000)
    found = {way: median(measured[WARM:] or measured) for way, measured in times.items()}
    print(found, flush=True)
    return {"model": name, **found}


def _request(number: int, tokens: int) -> Request:
    """A text that no other request has, of about so many tokens."""
    words = f"Room {number}: " + " ".join(sentence(number + n) for n in range(tokens))
    return Request(MODEL, " ".join(words.split()[:tokens]))


def _timed(engine: Engine, request: Request, read: Callable[[Any], object]) -> float:
    """Milliseconds of a pass, and of what is read of it."""
    began = time.perf_counter()
    read(engine.trace(request, lambda place: None))
    return (time.perf_counter() - began) * 1000
