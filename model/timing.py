"""How long one attention pass takes on this machine, measured when somebody asks for it."""

import os
import platform
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import median

LENGTHS = (32, 64, 128, 256, 512, 1024)
SECONDS = 2.0  # no further length is begun after so long
REPEATS, ENOUGH = 7, 0.2  # runs of one kind, fewer once they have taken so many seconds together
WIDEST = 2_048
Seconds = tuple[float, ...]
_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Measurement:
    """Median seconds of one attention pass at each length that was reached."""

    machine: str
    threads: int
    lengths: tuple[int, ...]
    fused: tuple[float, ...]  # one kernel, which keeps no scores
    explicit: tuple[float, ...]  # scores, weights and context one after another, all kept


@lru_cache(maxsize=16)
def measured(width: int, heads: int) -> Measurement:
    """Times our attention layer on the processor, one sequence, in both ways. At most a few seconds.

    Raises ValueError for a width that would take too long, or that the heads do not divide.
    """
    if width > WIDEST:
        raise ValueError(f"Widths up to {WIDEST:,} are measured here; this one is {width:,}.")
    import torch  # it takes seconds to import: pages are drawn first

    from model.attention import MultiHeadAttention
    from model.recorder import Place, Recorder, recording

    layer = MultiHeadAttention(width, heads, Place("decoder", 0, "causal")).eval()

    def passes(explicit: bool) -> Callable[[int], Callable[[], object]]:
        def of_length(length: int) -> Callable[[], object]:
            text = torch.randn(1, length, width)

            def run() -> object:
                with torch.inference_mode(), recording(Recorder(explicit=explicit)):
                    return layer(text)

            return run

        return of_length

    with _one_at_a_time:
        lengths, (fused, explicit) = timed((passes(False), passes(True)))
    return Measurement(machine(), torch.get_num_threads(), lengths, fused, explicit)


def timed(
    ways: Sequence[Callable[[int], Callable[[], object]]],
    *,
    lengths: Sequence[int] = LENGTHS,
    seconds: float = SECONDS,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[tuple[int, ...], tuple[Seconds, ...]]:
    """The lengths reached, and for each way the median seconds of a run at each of them.

    A way makes, for a length, what is run. Each run is made once before it is timed.
    """
    begun, rows = clock(), list[Seconds]()
    for length in lengths:
        if rows and clock() - begun > seconds:
            break
        rows.append(tuple(_median(way(length), clock) for way in ways))
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
