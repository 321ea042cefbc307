"""All heads of a run in their families, each with a small map of its weights, as the picker gets them."""

from collections.abc import Collection
from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from model.analysis.heads.statistics import Tiles, families, tiles
from model.nn.places import Head, Place
from model.trace.trace import Trace
from viz.explorer.packing import Json
from viz.notation.theme import MASKED, QUANTITIES

THEME: Json = {"quantities": {"weight": asdict(QUANTITIES["weight"])}, "masked": MASKED}
_HIDDEN, _ONE = 255, 250  # bytes of a map: no token may be looked at, and a weight of 1
_CELLS = 24  # rows and columns of a map


def all_heads(trace: Trace, ablated: Collection[Head] = (), *, has_maps: bool) -> list[Json]:
    """Each family with its layers, and with its maps if they are wanted: they take a moment to make."""
    return [
        {
            "title": family.title,
            "layers": [_layer(one.place) for one in family.members(trace)],
            "heads": family.members(trace)[0].heads,
            "zeroed": [list(head) for head in family.heads(trace) if head in ablated],
        }
        | (_maps(tiles(trace, family, _CELLS)) if has_maps else {})
        for family in families(trace)
    ]


def _layer(place: Place) -> dict[str, str]:
    return {"name": place.name, "label": place.label, "full": place.before_head}


def _maps(found: Tiles) -> Json:
    """The weights of each head as bytes (layer, head, row, column)."""
    blocked = np.broadcast_to(found.blocked[:, None], found.weights.shape)
    maps: NDArray[np.uint8] = np.where(
        blocked & (found.weights == 0), _HIDDEN, np.rint(found.weights * _ONE)
    ).astype(np.uint8)
    return {"maps": maps, "rows": maps.shape[2], "columns": maps.shape[3]}
