"""Maps of patches in the background: one run for a pair of sentences, a kind of patch and an answer."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import streamlit as st

from model.analysis.attribution.patch_estimates import estimated_map
from model.analysis.attribution.patching import PatchedRuns, What, check_runs, patch_maps
from model.analysis.attribution.paths import READS, Reads, path_maps
from model.nn.places import Head
from model.serving.engine import Request
from model.trace.arrays import Wide
from model.trace.trace import Trace
from viz.shell.background import Passes, PassesOf

if TYPE_CHECKING:
    from model.run.model import Model

Kind = What | Literal["path"]


@dataclass(frozen=True)
class Asked:
    """A map: the two runs, the ids of their answers, what is put in, and where it is read."""

    runs: tuple[Request, Request]  # A and B
    answer: tuple[int, int]  # ids of A's token and B's
    kind: Kind
    place: str = ""  # the sub-layer of "head_tokens"
    receiver: Head | None = None  # the head of "path"
    reads: tuple[Reads, ...] = READS


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


class PatchRun(Passes[PatchMap]):
    """A map under way or ended."""


@st.cache_resource
def runs() -> PassesOf[Asked, PatchRun]:
    """The runs of this process, shared by all visitors."""
    return PassesOf(PatchRun)


def work(
    model: "Model", traces: tuple[Trace, Trace], asked: Asked, run: PatchRun
) -> Iterator[PatchMap]:
    """The estimate first, then the exact map batch by batch."""
    check_runs(model, *traces, asked.answer)
    if asked.kind == "path":
        with run.turn():
            receiver = asked.receiver or (asked.place, 0)
            patched = PatchedRuns(model, *traces, "head", before=receiver[0])
            answers = patched.answers(asked.answer)
        maps = path_maps(patched, receiver, asked.reads, answer=asked.answer, turn=run.turn)
        for shares in maps:
            yield PatchMap(shares, None, answers, len(patched.all))
        return
    with run.turn():
        patched = PatchedRuns(model, *traces, asked.kind, asked.place)
        answers = patched.answers(asked.answer)
        estimate = estimated_map(patched, asked.answer)
    found = PatchMap(np.full(patched.shape, np.nan), estimate, answers, len(patched.all))
    yield found
    for shares in patch_maps(patched, asked.answer, turn=run.turn):
        yield replace(found, shares=shares)
