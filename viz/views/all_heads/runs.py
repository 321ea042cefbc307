"""Ablations of all heads in the background: one run for a request."""

from model.analysis.heads.ablations import Ablations
from model.serving.engine import Request
from viz.shell.background import Passes, PassesOf


class AblationRun(Passes[Ablations]):
    """One pass for each head, under way or ended."""


class AblationRuns(PassesOf[Request, AblationRun]):
    """At most one run for a request; the last ones are kept with what they found."""

    def __init__(self) -> None:
        super().__init__(AblationRun)
