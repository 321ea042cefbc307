"""How much memory a model needs on the cluster, and how much is free there."""

from typing import Any

from model.loading.registry import models
from model.loading.shipped import ASSETS
from model.loading.untrained_models import untrained_bytes
from model.serving.cluster.messages import Bounds
from model.system.settings import MEGABYTE

PROCESS_BYTES = 600 * MEGABYTE  # of an actor with PyTorch, before it loads a model


def needed(model: str, bounds: Bounds) -> int:
    """Bytes of memory that an actor of a model reserves."""
    return PROCESS_BYTES + _size_of(model, bounds.model_bytes) + bounds.trace_bytes


def most_free() -> float:
    """Bytes of memory that are free on the machine that has most of it."""
    from ray._private.state import available_resources_per_node

    return max(
        (one.get("memory", 0.0) for one in available_resources_per_node().values()), default=0.0
    )


def has_room(handle: Any) -> bool:
    """Whether a machine was found for an actor."""
    from ray._private.state import actors

    found = actors(handle._actor_id.hex())
    return bool(found and found["Pid"])  # of the process that a machine has given it


def _size_of(model: str, bound: int) -> int:
    """Bytes of a model's weights in float32, as far as they are known before it is loaded; else the most that
    a model may take."""
    entry = models.found(model)
    if entry is None:
        return bound
    if entry.untrained:
        return untrained_bytes(entry.name)
    folder = ASSETS / entry.name if entry.ships else entry.folder
    files = [] if folder is None else [*folder.glob("*.safetensors")]
    return min(
        2 * sum(file.stat().st_size for file in files) or bound, bound
    )  # kept in half precision
