"""Maps of patches in the background: one run for a pair of sentences, a kind of patch and an answer."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from model.analysis.attribution.growing_map import Kind, PatchMap, growing_map
from model.analysis.attribution.paths import READS, Reads
from model.nn.places import Head
from model.serving.engine import Request
from model.trace.trace import Trace
from viz.shell.background import Passes, PassesOf

if TYPE_CHECKING:
    from model.run.model import Model


@dataclass(frozen=True)
class Asked:
    """A map: the two runs, the ids of their answers, what is put in, and where it is read."""

    runs: tuple[Request, Request]  # A and B
    answer: tuple[int, int]  # ids of A's token and B's
    kind: Kind
    place: str = ""  # the sub-layer of "head_tokens"
    receiver: Head | None = None  # the head of "path"
    reads: tuple[Reads, ...] = READS


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
    return growing_map(
        model,
        *traces,
        asked.kind,
        asked.answer,
        place=asked.place,
        receiver=asked.receiver,
        reads=asked.reads,
        turn=run.turn,
    )
