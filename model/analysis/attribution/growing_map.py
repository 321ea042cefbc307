"""A map of patches while it is computed: the estimate first, then batch by batch."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from model.analysis.attribution.patch_estimates import estimated_map
from model.analysis.attribution.patching import PatchedRuns, Turn, What, check_runs, patch_maps
from model.analysis.attribution.paths import READS, Reads, path_maps
from model.nn.places import Head
from model.system.elsewhere import asked
from model.trace.arrays import Wide
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model

Kind = What | Literal["path"]


@dataclass(frozen=True, eq=False)
class PatchMap:
    """What is known of a map: shares, NaN where they are still to come, and the estimate of them."""

    shares: Wide
    estimate: Wide | None  # None for paths
    answers: tuple[float, float]  # of A and of B: differences of two logits
    total: int  # cells

    @property
    def done(self) -> int:
        return int(np.isfinite(self.shares).sum())


@asked
def growing_map(
    model: "Model",
    trace_a: Trace,
    trace_b: Trace,
    kind: Kind,
    answer: tuple[int, int],
    *,
    place: str = "",
    receiver: Head | None = None,
    reads: tuple[Reads, ...] = READS,
    turn: Turn,
) -> Iterator[PatchMap]:
    """Of "path" the map of `path_maps` into a receiver; else that of `patch_maps`. place: the sub-layer of
    "head_tokens". turn: makes a context in which one batch runs. Raises ValueError as `check_runs`."""
    check_runs(model, trace_a, trace_b, answer)
    if kind == "path":
        with turn():
            into = receiver or (place, 0)
            patched = PatchedRuns(model, trace_a, trace_b, "head", before=into[0])
            answers = patched.answers(answer)
        for shares in path_maps(patched, into, reads, answer=answer, turn=turn):
            yield PatchMap(shares, None, answers, len(patched.all))
        return
    with turn():
        patched = PatchedRuns(model, trace_a, trace_b, kind, place)
        answers = patched.answers(answer)
        estimate = estimated_map(patched, answer)
    found = PatchMap(np.full(patched.shape, np.nan), estimate, answers, len(patched.all))
    yield found
    for shares in patch_maps(patched, answer, turn=turn):
        yield replace(found, shares=shares)
