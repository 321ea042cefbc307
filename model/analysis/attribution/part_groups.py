"""Parts of a score, gathered by layer where they are many."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from model.nn.places import Place, head_named
from model.trace.arrays import Wide

FEW = 16  # up to so many parts stand alone


@dataclass(frozen=True)
class Group:
    """One part, or all parts of a layer."""

    members: tuple[int, ...]  # their places among the parts
    layer: int | None = None  # None: one part alone


def grouped(parts: Sequence[str], opened: int | None = None) -> tuple[Group, ...]:
    """All parts alone where they are few; else one group for each layer but the opened one."""
    alone = len(parts) <= FEW
    layers: dict[tuple[int | None, int], list[int]] = {}
    for at, part in enumerate(parts):
        layer = layer_of(part)
        single = alone or layer is None or layer == opened
        layers.setdefault((None, at) if single else (layer, -1), []).append(at)
    return tuple(Group(tuple(members), layer) for (layer, _), members in layers.items())


def layer_of(part: str) -> int | None:
    """The layer that wrote a part; None for the embedding and the biases."""
    head = head_named(part)
    name = part if head is None else head[0]
    return Place.named(name).layer if "." in name else None


def summed(values: Wide, queries: Sequence[Group], keys: Sequence[Group]) -> Wide:
    """values (query part, key part), added up over each pair of groups."""
    rows = np.stack([values[list(group.members)].sum(0) for group in queries])
    return np.stack([rows[:, list(group.members)].sum(1) for group in keys], axis=1)
