"""All heads of a run in their families, each with a small map of its weights, as the picker gets them."""

from collections.abc import Collection
from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from model.analysis.heads.statistics import Family, families, family_of, tiles
from model.nn.places import Head, Place
from model.trace.trace import Trace
from viz.explorer.packing import Json
from viz.notation.theme import MASKED, QUANTITIES

THEME: Json = {"quantities": {"weight": asdict(QUANTITIES["weight"])}, "masked": MASKED}
_HIDDEN, _ONE = 255, 250  # bytes of a map: no token may be looked at, and a weight of 1
_CELLS = 24  # rows and columns of a map
_AT_ONCE = 64  # docked heads of a family that are seen at once; of more, those of one layer


def all_heads(
    trace: Trace, ablated: Collection[Head] = (), *, mapped: Collection[str] = ()
) -> list[Json]:
    """Each family with its layers. mapped: names of the layers that come with their maps, which take a moment
    to make."""
    return [
        {
            "title": family.title,
            "layers": [_layer(one.place) for one in family.members(trace)],
            "heads": family.members(trace)[0].heads,
            "isLong": len(family.heads(trace)) > _AT_ONCE,
            "zeroed": [list(head) for head in family.heads(trace) if head in ablated],
        }
        | _maps(trace, family, mapped)
        for family in families(trace)
    ]


def in_view(trace: Trace, name: str) -> tuple[str, ...]:
    """The layers whose heads are seen where all heads are docked and this layer is chosen."""
    family = family_of(trace, trace.find(name))
    seen = family.members(trace) if len(family.heads(trace)) <= _AT_ONCE else [trace.find(name)]
    return tuple(one.name for one in seen)


def _layer(place: Place) -> dict[str, str]:
    return {"name": place.name, "label": place.label, "full": place.before_head}


def _maps(trace: Trace, family: Family, mapped: Collection[str]) -> Json:
    """The weights of each head as bytes (head, row, column), by layer."""
    names = [one.name for one in family.members(trace) if one.name in mapped]
    if not names:
        return {}
    found = tiles(trace, family, _CELLS, names)
    blocked = np.broadcast_to(found.blocked[:, None], found.weights.shape)
    maps: NDArray[np.uint8] = np.where(
        blocked & (found.weights == 0), _HIDDEN, np.rint(found.weights * _ONE)
    ).astype(np.uint8)
    by_layer = dict(zip(names, maps, strict=True))
    return {"maps": by_layer, "rows": maps.shape[2], "columns": maps.shape[3]}
