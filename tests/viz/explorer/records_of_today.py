"""Records with a cap, a bias, sinks and windows, for the tests of the explorer."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.trace.records import Attention
from tests.viz.explorer.records import record, with_output


def closed(rows: list[int], size: int = 6) -> NDArray[np.bool_]:
    """A mask whose named rows may look at nothing."""
    mask = np.tri(size, dtype=bool)
    mask[rows] = False
    return mask


def later(queries: int = 6, keys: int | None = None, **more: Any) -> Attention:
    """A record whose scores are capped, get a bias, and share their weight with a sink."""
    return with_output(replace(record(queries, keys), **more))


def numbers(*sizes: int) -> NDArray[np.float32]:
    return np.random.default_rng(7).normal(size=sizes).astype(np.float32)


def by_distance(queries: int, keys: int) -> NDArray[np.float32]:
    """A bias (head, query, key) that depends on the distance only."""
    distance = np.arange(keys) - np.arange(queries)[:, None]
    return numbers(3, queries + keys)[:, distance + queries]


WINDOW = np.tri(6, dtype=bool) & ~np.tri(6, k=-2, dtype=bool)  # a query and the token before it
SINKS = np.array([0.5, -2.0, 3.0], np.float32)
LATER = {
    "cap": later(cap=0.5),
    "bias of each cell": later(bias=numbers(3, 6, 6)),
    "one bias for all heads": later(bias=numbers(1, 6, 6)),
    "bias by distance": later(bias=by_distance(6, 6)),
    "bias of keys": later(bias=numbers(3, 1, 6)),
    "bias of a cross layer": later(5, 9, bias=by_distance(5, 9), look_ahead=False),
    "sinks": later(sinks=SINKS),
    "all": later(
        cap=1.5, bias=by_distance(6, 6), sinks=SINKS, window=2, own_mask=WINDOW, look_ahead=False
    ),
    "sinks of closed rows": later(sinks=SINKS, own_mask=closed([0, 3]), look_ahead=False),
    "weights set beside a sink": later(sinks=SINKS, weights_set=((1, 3, 2, 0.25), (2, 4, 0, 0.5))),
}
