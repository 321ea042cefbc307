"""A cluster for the tests of faults, and apps on it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.model.serving.cluster.machines import (  # before Ray is imported
    LIVING,
    REPOSITORY,
    Machines,
)

from model.serving.cluster.actors import Actors  # isort: skip
from model.serving.cluster.cluster_engine import ClusterEngine
from model.serving.cluster.messages import Bounds
from model.system.cluster import joined


@pytest.fixture(scope="module")
def machines(ray_home: Path) -> Iterator[Machines]:
    """A head without room for models, on which the app is, and a machine with room for two."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(ray_home))
        patch.setenv("PYTHONPATH", str(REPOSITORY))
        patch.setenv("RAY_health_check_period_ms", "1000")  # who is gone is missed at once
        for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_ADDRESS"):
            patch.delenv(name, raising=False)
        made = Machines()
        try:
            made.start(100)
            made.start(1600)
            with joined(made.address, cpus=1, serving=True):
                yield made
        finally:
            made.end()


@pytest.fixture
def replica(machines: Machines) -> Callable[..., ClusterEngine]:
    """Call it for one more app on the cluster."""

    def made(bounds: Bounds = LIVING, copies: int = 1, **how: Any) -> ClusterEngine:
        engine = ClusterEngine(machines.address, **how)
        engine._actors = Actors(machines.address, bounds, copies=copies, gpus=0)
        return engine

    return made
