"""How long one attention pass takes on this machine."""

import os
import platform
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from cachetools import LRUCache, cached
from cachetools.keys import hashkey

from model.arithmetic.sizes import head_width
from model.system.deadline import own_time

if TYPE_CHECKING:
    from torch import Tensor

    HeadWay = Callable[[], Tensor]

LENGTHS = (32, 64, 128, 256, 512, 1024)
SECONDS = 4.0  # of measuring, after which no further length begins
REPEATS, ENOUGH = 50, 0.2  # runs of one kind; fewer once they took so many seconds together
FEWEST = 3  # but so many: another program may hold one of them up
WIDEST = 2_048
MOST_PAIRS = 2**24  # scores of all heads, 64 MiB
Seconds = tuple[float, ...]
Turn = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True)
class Measurement:
    """Fastest seconds of one attention pass at each length that was reached."""

    machine: str
    threads: int
    lengths: tuple[int, ...]
    fused: tuple[float, ...]  # one kernel, which keeps no scores
    explicit: tuple[float, ...]  # scores, weights and context one after another, all kept


@cached(LRUCache(16), key=lambda *sizes, turn, again=0: hashkey(*sizes, again), lock=Lock())
def measured(width: int, heads: int, *, turn: Turn, again: int = 0) -> Measurement:
    """Times our attention layer on the processor, one sequence, in both ways. At most a few seconds.

    Args:
        width: d_model.
        turn: held around each length, so that no other pass computes beside it.
        again: another number measures anew, the same one gives what was measured.

    Raises ValueError for a width that would take too long, or that the heads do not divide.
    """
    if width > WIDEST:
        raise ValueError(f"Widths up to {WIDEST:,} are measured here; this one is {width:,}.")
    import torch  # it takes seconds to import: pages are drawn first

    from model.nn.attention import MultiHeadAttention
    from model.nn.config import TransformerConfig
    from model.nn.places import Place
    from model.nn.recorder import Recorder, recording
    from model.system.randomness import seeded

    config = TransformerConfig("decoder", 1, max(LENGTHS), width, heads, decoder_layers=1)
    with seeded(0, torch.device("cpu")):  # not of the generator that other visitors' runs draw from
        layer = MultiHeadAttention(config, Place("decoder", 0, "causal")).eval()
    random = torch.Generator().manual_seed(0)

    def run(text: torch.Tensor, *, explicit: bool) -> object:
        with torch.inference_mode(), recording(Recorder(explicit=explicit)):
            return layer(text)

    ways = [
        lambda length, explicit=explicit: partial(
            run, torch.randn(1, length, width, generator=random), explicit=explicit
        )
        for explicit in (False, True)
    ]
    lengths, (fused, explicit) = timed(ways, turn=turn)
    return Measurement(machine(), torch.get_num_threads(), lengths, fused, explicit)


@dataclass(frozen=True)
class HeadsMeasurement:
    """Fastest seconds of one attention layer, its heads at once and one after another."""

    machine: str
    threads: int
    one_shot: float
    loop: float
    difference: float  # of the two results, at most


@cached(LRUCache(16), key=lambda *sizes, turn, again=0: hashkey(*sizes, again), lock=Lock())
def measured_heads(
    width: int, heads: int, length: int, *, turn: Turn, again: int = 0
) -> HeadsMeasurement:
    """Times `head_ways` on one sequence.

    Args:
        width: d_model.
        length: tokens.
        turn, again: as in `measured`.

    Raises ValueError for sizes that would take too long or too much memory.
    """
    pairs = heads * length * length
    if width > WIDEST or length > max(LENGTHS) or pairs > MOST_PAIRS:
        raise ValueError(
            f"Widths up to {WIDEST:,}, lengths up to {max(LENGTHS):,} and up to {MOST_PAIRS:,} scores are "
            f"measured here; these sizes have {width:,}, {length:,} and {pairs:,}."
        )
    import torch

    ways = head_ways(width, heads, length)
    one_shot, loop = (way() for way in ways)
    _, seconds = timed([partial(_of_any_length, way) for way in ways], lengths=(length,), turn=turn)
    (shot,), (looped,) = seconds
    apart = float((one_shot - loop).abs().max())
    return HeadsMeasurement(machine(), torch.get_num_threads(), shot, looped, apart)


def _of_any_length(way: "HeadWay", length: int) -> "HeadWay":
    return way


def head_ways(width: int, heads: int, length: int) -> "tuple[HeadWay, HeadWay]":
    """Multi-head attention without biases on random vectors, in two ways with the same result,
    (length, width): one product for all heads; and a loop over the heads, each with its own slice of W.

    Raises ValueError where the heads do not divide the width.
    """
    import torch

    d_k = head_width(width, heads)
    random = torch.Generator().manual_seed(0)
    x = torch.randn(length, width, generator=random)
    maps = torch.randn(4, width, width, generator=random) / width**0.5  # W_Q, W_K, W_V, W_O

    def one_shot() -> torch.Tensor:
        q, k, v = (split(x @ each) for each in maps[:3])
        weights = torch.softmax(q @ k.transpose(-2, -1) / d_k**0.5, dim=-1)
        return (weights @ v).transpose(0, 1).reshape(length, width) @ maps[3]

    def split(each: torch.Tensor) -> torch.Tensor:
        return each.view(length, heads, d_k).transpose(0, 1)  # (head, token, d_k)

    def loop() -> torch.Tensor:
        outputs = []
        for head in range(heads):
            own = slice(head * d_k, (head + 1) * d_k)
            q, k, v = (x @ each[:, own] for each in maps[:3])
            weights = torch.softmax(q @ k.T / d_k**0.5, dim=-1)
            outputs.append(weights @ v)
        return torch.cat(outputs, dim=-1) @ maps[3]

    return one_shot, loop


def timed(
    ways: Sequence[Callable[[int], Callable[[], object]]],
    *,
    lengths: Sequence[int] = LENGTHS,
    seconds: float = SECONDS,
    clock: Callable[[], float] = own_time,
    turn: Turn = nullcontext,
) -> tuple[tuple[int, ...], tuple[Seconds, ...]]:
    """The lengths reached, and for each way the seconds of its fastest run at each of them.

    Args:
        ways: each makes the run of a length; each run is done once before it is timed.
        lengths: tokens, in this order.
        seconds: of measuring in all; after them no further length begins.
        clock: gives the seconds that have passed.
        turn: held around each length.
    """
    spent, rows = 0.0, list[Seconds]()
    for length in lengths:
        if spent > seconds:
            break
        with turn():
            begun = clock()
            rows.append(tuple(_fastest(way(length), clock) for way in ways))
            spent += clock() - begun
    return tuple(lengths[: len(rows)]), tuple(zip(*rows, strict=True))


def _fastest(run: Callable[[], object], clock: Callable[[], float]) -> float:
    """Other work on the machine makes a run slower, never faster: the fastest says most about the run."""
    run()
    taken: list[float] = []
    while len(taken) < FEWEST or (len(taken) < REPEATS and sum(taken) < ENOUGH):
        begun = clock()
        run()
        taken.append(clock() - begun)
    return min(taken)


def machine(description: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's name, where the system tells it, with its number of cores."""
    name = platform.processor() or platform.machine() or "unknown processor"
    if description.is_file():
        told = description.read_text(encoding="utf-8", errors="replace")
        found = re.search(r"^model name[^:]*:[ \t]*(.*\S)", told, re.MULTILINE)
        name = found[1] if found else name
    return f"{name}, {os.cpu_count() or 1} cores"
