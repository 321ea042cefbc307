"""What compares all heads in the background: ablations, and composition of heads."""

from dataclasses import dataclass

from model.analysis.attribution.head_composition import Composition
from model.analysis.heads.ablations import Ablations
from model.nn.places import Head
from model.serving.engine import Request
from viz.shell.background import Passes, PassesOf


class AblationRun(Passes[Ablations]):
    """One pass for each head, under way or ended."""


class AblationRuns(PassesOf[Request, AblationRun]):
    """At most one run for a request; the last ones are kept with what they found."""

    def __init__(self) -> None:
        super().__init__(AblationRun)


@dataclass(frozen=True)
class CompositionSoFar:
    """One head's numbers with the heads it has been compared with."""

    done: int  # heads
    total: int
    ratios: tuple[Composition, ...]


class CompositionRun(Passes[CompositionSoFar]):
    """One head compared with all others, under way or ended."""


class CompositionRuns(PassesOf[tuple[Request, Head], CompositionRun]):
    """At most one run for a request and a head; the last ones are kept with what they found."""

    def __init__(self) -> None:
        super().__init__(CompositionRun)
