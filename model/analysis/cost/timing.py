"""How long one attention pass takes on this machine, measured when somebody asks for it."""

import os
import platform
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from threading import Lock

from cachetools import LRUCache, cached
from cachetools.keys import hashkey

LENGTHS = (32, 64, 128, 256, 512, 1024)
SECONDS = 2.0  # of measuring, after which no further length is begun
REPEATS, ENOUGH = 7, 0.2  # runs of one kind, fewer once they have taken so many seconds together
WIDEST = 2_048
Seconds = tuple[float, ...]
Turn = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True)
class Measurement:
    """Median seconds of one attention pass at each length that was reached."""

    machine: str
    threads: int
    lengths: tuple[int, ...]
    fused: tuple[float, ...]  # one kernel, which keeps no scores
    explicit: tuple[float, ...]  # scores, weights and context one after another, all kept


@cached(LRUCache(16), key=lambda width, heads, turn: hashkey(width, heads), lock=Lock())
def measured(width: int, heads: int, turn: Turn) -> Measurement:
    """Times our attention layer on the processor, one sequence, in both ways. At most a few seconds.

    turn: held around each length, so that no pass of the app's computes beside it.
    Raises ValueError for a width that would take too long, or that the heads do not divide.
    """
    if width > WIDEST:
        raise ValueError(f"Widths up to {WIDEST:,} are measured here; this one is {width:,}.")
    import torch  # it takes seconds to import: pages are drawn first

    from model.nn.attention import MultiHeadAttention
    from model.nn.recorder import Place, Recorder, recording

    layer = MultiHeadAttention(width, heads, Place("decoder", 0, "causal")).eval()

    def passes(explicit: bool) -> Callable[[int], Callable[[], object]]:
        def of_length(length: int) -> Callable[[], object]:
            text = torch.randn(1, length, width)

            def run() -> object:
                with torch.inference_mode(), recording(Recorder(explicit=explicit)):
                    return layer(text)

            return run

        return of_length

    lengths, (fused, explicit) = timed((passes(False), passes(True)), turn=turn)
    return Measurement(machine(), torch.get_num_threads(), lengths, fused, explicit)


def timed(
    ways: Sequence[Callable[[int], Callable[[], object]]],
    *,
    lengths: Sequence[int] = LENGTHS,
    seconds: float = SECONDS,
    clock: Callable[[], float] = time.perf_counter,
    turn: Turn = nullcontext,
) -> tuple[tuple[int, ...], tuple[Seconds, ...]]:
    """The lengths reached, and for each way the median seconds of a run at each of them.

    A way makes, for a length, what is run. Each run is made once before it is timed.
    """
    spent, rows = 0.0, list[Seconds]()
    for length in lengths:
        if spent > seconds:
            break
        with turn():
            begun = clock()
            rows.append(tuple(_median(way(length), clock) for way in ways))
            spent += clock() - begun
    return tuple(lengths[: len(rows)]), tuple(zip(*rows, strict=True))


def _median(run: Callable[[], object], clock: Callable[[], float]) -> float:
    run()
    taken: list[float] = []
    while len(taken) < REPEATS and sum(taken) < ENOUGH:
        begun = clock()
        run()
        taken.append(clock() - begun)
    return median(taken)


def machine(description: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's name, as far as the system tells it, with its number of cores."""
    name = platform.processor() or platform.machine() or "processor of unknown name"
    if description.is_file():
        for line in description.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                name = line.partition(":")[2].strip() or name
                break
    return f"{name}, {os.cpu_count() or 1} cores"
