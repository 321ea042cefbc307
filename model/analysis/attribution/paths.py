"""Patches along one path: what a later head would do if it alone read an earlier head of another run.

Source: Wang et al. 2022, "Interpretability in the Wild", path patching. Axes as in patching.py.
"""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Literal, get_args

from torch import Tensor

from model.analysis.attribution.patching import PatchedRuns, Spot, Turn, check_runs, in_rows
from model.nn.patches import Site, SiteKind, Where, keeping, one_after_another, putting
from model.nn.places import Head, Place
from model.system.elsewhere import asked
from model.trace.arrays import Wide
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model

Reads = Literal["query", "key", "value"]
READS: tuple[Reads, ...] = get_args(Reads)


@asked
def path_map(
    model: "Model",
    trace_a: Trace,
    trace_b: Trace,
    receiver: Head,
    reads: Sequence[Reads] = READS,
    *,
    answer: tuple[int, int],
) -> Wide:
    """(sub-layer, head): how far each earlier head, as it is in run B, moves the answer through one later
    head alone.

    Of each sender two passes. In the first its output is run B's, and all other heads and feed-forwards are
    held as in run A, so that what the receiver reads changes by the direct way only. The second is run A
    with the receiver's queries, keys or values (`reads`) of the first. 0 and 1 as in `patch_map`.
    Raises ValueError as `patch_map` does, and where no head comes before the receiver.
    """
    check_runs(model, trace_a, trace_b, answer)
    runs = PatchedRuns(model, trace_a, trace_b, "head", before=receiver[0])
    *_, last = path_maps(runs, receiver, reads, answer=answer)
    return last


def path_maps(
    runs: PatchedRuns,
    receiver: Head,
    reads: Sequence[Reads] = READS,
    *,
    answer: tuple[int, int],
    turn: Turn = nullcontext,
) -> Iterator[Wide]:
    """The same map after each batch, as `patch_maps` gives it. runs: of heads before the receiver."""
    with turn():
        held = _held(runs)

    def patched(batch: list[Spot]) -> Tensor:
        read = _read(runs, batch, held, receiver[0])
        return _with(runs, len(batch), read, receiver, reads)

    yield from runs.shares(answer, patched, turn)


def _held(runs: PatchedRuns) -> dict[Site, Tensor]:
    """What every head and every feed-forward of run A gives."""
    held: dict[Site, Tensor] = {}

    def through(kind: SiteKind, name: str, x: Tensor) -> Tensor:
        if kind in ("output", "hidden"):
            held[kind, name] = x
        return x

    runs.passed(runs.trace, through)
    return held


def _read(
    runs: PatchedRuns, batch: Sequence[Spot], held: dict[Site, Tensor], receiver: str
) -> dict[Site, Tensor]:
    """The queries, keys and values of the receiver's sub-layer, a row for each sender."""
    rows, read = len(batch), dict[Site, Tensor]()
    first = runs.first_layer(batch)
    everything: dict[Site, list[Where]] = {
        site: [(None, None)] for site in held if first is None or not _before(site[1], first)
    }
    through = one_after_another(
        putting(held, [everything] * rows),
        putting(runs.kept, [runs.sites_of([spot]) for spot in batch]),
        keeping(read, [(kind, receiver) for kind in READS]),
    )
    if first is None:
        runs.passed(runs.trace, through, rows)
    else:
        runs.passed(runs.trace, one_after_another(in_rows(first, rows), through))
    return read


def _before(name: str, first: str) -> bool:
    """Whether a sub-layer of a decoder is of an earlier layer."""
    layer, other = (Place.named(one).layer or 0 for one in (name, first))
    return layer < other


def _with(
    runs: PatchedRuns,
    rows: int,
    read: dict[Site, Tensor],
    receiver: Head,
    reads: Sequence[Reads],
) -> Tensor:
    """What run A ends with where one head has these queries, keys or values."""
    place, head = receiver
    put = putting(read, [{(kind, place): [(head, None)] for kind in reads}] * rows)
    first = runs.first_layer([Spot(place, head)])
    if first is None:
        return runs.passed(runs.trace, put, rows)
    return runs.passed(runs.trace, one_after_another(in_rows(first, rows), put))
