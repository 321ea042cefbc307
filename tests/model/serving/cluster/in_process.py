"""A model's actor in this process: everything that travels is written and read as on a cluster, without Ray's
processes."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from model.serving.cluster.actors import Actor, Actors
from model.serving.cluster.asking import Asking
from model.serving.cluster.cluster_engine import ClusterEngine
from model.serving.cluster.host import ModelHost
from model.serving.cluster.messages import Bounds
from model.system.fair_queue import nothing
from model.system.settings import MEGABYTE

METHODS = ("answer", "step", "place", "leave", "load")
LARGE = Bounds(2000 * MEGABYTE, 500 * MEGABYTE, 1e9)


class Here(Actors):
    """One host of each model, in this process."""

    def __init__(self) -> None:
        self.hosts: dict[str, ModelHost] = {}

    def join(self) -> None:
        """There is nothing to join."""

    def of(
        self,
        model: str,
        key: object,
        wanted: Callable[[], object] = nothing,
        tell: Callable[[str, float | None], object] = nothing,
    ) -> Actor:
        if model not in self.hosts:
            self.hosts[model] = ModelHost(model, LARGE, 0)
        asked = {name: SimpleNamespace(remote=getattr(self.hosts[model], name)) for name in METHODS}
        return Actor(0, SimpleNamespace(**asked), None)


def engine_beside(hosts: Here, patch: pytest.MonkeyPatch, **how: Any) -> ClusterEngine:
    """An engine whose actors are these hosts: one replica of the app."""
    patch.setattr(Asking, "_looked_for", lambda asking, actor, answer: answer)
    engine = ClusterEngine("local", **how)
    engine._actors = hosts
    return engine
