"""The arrays of one attention layer as the browser gets them, and what it knows them by.

Scores and weights need only queries and keys. Of values and outputs that are not sent, their sums over the
dimensions are, so that the weights can be checked.
"""

import hashlib
import math
from threading import Lock
from weakref import ref

import numpy as np
from cachetools import LRUCache, cached
from numpy.typing import NDArray

from model.nn.stages import SCORE_STAGES
from model.trace.arrays import Array
from model.trace.blocks import by_queries
from model.trace.records import Attention
from viz.explorer.around import Group
from viz.explorer.packing import Json

_KNOWN = 256  # layers whose kind of bias is remembered
TOGETHER = 1024  # queries whose scores are computed at once
KEPT = 32_000_000  # bytes of encoded layers in the cache, and of what stands around heads in another one


def _layer_bytes(layer: Json) -> int:
    return sum(part.nbytes for part in layer.values() if isinstance(part, np.ndarray))


@cached(
    LRUCache(KEPT, getsizeof=_layer_bytes),
    key=lambda attention, *part: (ref(attention), *part),
    lock=Lock(),
)
def layer_arrays(attention: Attention, sent: range, complete: bool) -> Json:
    chosen = slice(sent.start, sent.stop)
    query, keys, values = attention.vectors
    heads, output = attention.heads, attention.output[chosen]
    key, value = _shared(keys, heads, sent), _shared(values, heads, sent)
    band = band_of(attention)
    mask = attention.mask if band is None else None
    mask = mask if mask is None or mask.ndim == 2 else mask[chosen]
    dropped = [attention.dropped(head) for head in sent] if attention.drops else None
    facts: Json = {
        "name": attention.name,
        "label": attention.place.before_head,
        "kind": attention.kind,
        "heads": heads,
        **_sizes(attention),
        "ablated": list(attention.ablated),
        "weightsSet": [list(cell) for cell in attention.weights_set],
        "first": sent.start,
        "sent": len(sent),
        "scale": float(attention.scale),
        "mask_value": float(attention.mask_value) if math.isfinite(attention.mask_value) else None,
        "band": band,
        "maskHeads": 1 if mask is None or mask.ndim == 2 else len(sent),
        "range": _ranges(attention),
        "query": floats(query[chosen]),
        "key": floats(key),
        "mask": None if mask is None else np.packbits(mask, bitorder="little"),
        **{one.field: one.of(attention) for one in SCORE_STAGES if not one.is_array},
        "later": [
            {
                "name": one.name,
                "readout": one.readout,
                "title": one.word.capitalize(),
                "says": one.beat(one.of(attention)),
            }
            for one in SCORE_STAGES
            if one.is_in(attention)
        ],
        "window": attention.window,
        "sinks": None if attention.sinks is None else floats(attention.sinks[chosen]),
        **_bias(attention, chosen),
        "dropped": None if dropped is None else floats(np.stack(dropped)),
    }
    content = hashlib.blake2b(digest_size=8)  # by which the browser recognizes a layer
    for fact in [*facts.values(), floats(value), floats(output)]:
        content.update(fact.data if isinstance(fact, np.ndarray) else repr(fact).encode())
    digest = content.hexdigest()
    return facts | {
        "digest": digest,
        "complete": complete,
        "part": f"{digest} {'complete' if complete else 'without values'}",
        "value": floats(value) if complete else None,
        "output": floats(output) if complete else None,
        "valueSums": None if complete else floats(value.sum(-1)),
        "outputSums": None if complete else floats(output.sum(-1)),
    }


def _sizes(attention: Attention) -> Json:
    """Of the vectors, and how many heads share one of keys or values."""
    query, key, value = attention.vectors
    return {
        "keyGroup": attention.heads // len(key),
        "valueGroup": attention.heads // len(value),
        "queries": query.shape[1],
        "keys": key.shape[1],
        "width": key.shape[2],
        "valueWidth": value.shape[2],
    }


def _shared(vectors: Array, heads: int, sent: range) -> Array:
    """The keys or values of the sent heads: once each, though several heads share them."""
    group = heads // len(vectors)
    return vectors[sent.start // group : (sent.stop - 1) // group + 1]


@cached(LRUCache(_KNOWN), key=ref, lock=Lock())
def band_of(attention: Attention) -> tuple[int, int] | None:
    """How many keys before itself and after itself a query may read, where that is all that the mask of
    self-attention says; else None."""
    mask = attention.own_mask
    queries, keys = (vectors.shape[1] for vectors in attention.vectors[:2])
    if attention.look_ahead:
        return queries - 1, 0
    if attention.kind == "cross" or mask is None or mask.ndim != 2:
        return None
    if not (mask[0].any() and mask[-1].any()):
        return None
    before, after = queries - 1 - int(mask[-1].argmax()), keys - 1 - int(mask[0, ::-1].argmax())
    if min(before, after) < 0 or not np.array_equal(mask, _band(mask.shape, before, after)):
        return None
    return before, after


def _band(shape: tuple[int, ...], before: int, after: int) -> NDArray[np.bool_]:
    """(query, key): True from so many keys before the query to so many after it."""
    queries, keys = shape
    return np.tri(queries, keys, after, dtype=bool) & ~np.tri(
        queries, keys, -before - 1, dtype=bool
    )


@cached(LRUCache(_KNOWN), key=ref, lock=Lock())
def by_distance(attention: Attention) -> bool:
    """Whether the bias of a layer depends only on the distance of key and query."""
    bias = attention.bias
    if bias is None or bias.shape[1] == 1:
        return False
    return np.array_equal(bias[:, 1:, 1:], bias[:, :-1, :-1])


def _bias(attention: Attention, chosen: slice) -> Json:
    """The bias of the scores, whose sizes are 1 where it does not change along an axis. One that depends on
    the distance of key and query is sent so: (head, distance), from the last query and the first key on."""
    bias = attention.bias
    if bias is None:
        return {"bias": None, "biasBy": "", "biasSizes": []}
    heads = bias if len(bias) == 1 else bias[chosen]
    rows = heads.shape[1]
    if by_distance(attention):
        distances = np.concatenate([heads[:, :0:-1, 0], heads[:, 0]], axis=-1)
        return {"bias": floats(distances), "biasBy": "distance", "biasSizes": [len(heads), rows]}
    return {"bias": floats(heads), "biasBy": "cell", "biasSizes": [len(heads), rows]}


def _ranges(attention: Attention) -> dict[str, float]:
    """The largest magnitude of each quantity over all heads of the layer."""
    scores = _largest(attention, "scores")
    scaled = scores * abs(attention.scale)
    steps = {"scores": scores, "scaled": scaled}
    for stage in SCORE_STAGES:
        last = [*steps.values()][-1]
        steps[stage.name] = _largest(attention, stage.name) if stage.is_in(attention) else last
    vectors = ("query", "key", "value", "output")
    ranges = {name: _magnitude(getattr(attention, name)) for name in vectors}
    return ranges | steps


def _largest(attention: Attention, step: str) -> float:
    """The largest magnitude of a step over all heads, some queries at a time."""
    return max(
        _magnitude(getattr(some, step)(head))
        for some in by_queries(attention, TOGETHER)
        for head in range(attention.heads)
    )


def _magnitude(array: Array) -> float:
    return max(float(array.max()), -float(array.min())) if array.size else 0.0


@cached(
    LRUCache(KEPT, getsizeof=lambda group: _layer_bytes(group[1])),
    key=lambda attention, name, group: (ref(attention), name),
    lock=Lock(),
)
def group_arrays(attention: Attention, name: str, group: Group) -> tuple[Json, Json]:
    """The facts of a group of stages around the heads of a layer, and its arrays by name."""
    return group.facts(), {array: floats(values) for array, values in group.arrays().items()}


def forget_gone() -> None:
    """Drops what was encoded of layers that are not in memory any more."""
    for encoded in (layer_arrays, group_arrays):
        cache, lock = encoded.cache, encoded.cache_lock
        if cache is None or lock is None:
            continue
        with lock:
            for key in [key for key in cache if key[0]() is None]:
                del cache[key]


def floats(array: Array) -> Array:
    """A copy of an array as contiguous little-endian float32.

    Raises ValueError if a number in it is not finite.
    """
    if not np.isfinite(array).all():
        raise ValueError("A vector of the attention layer contains a number that is not finite.")
    return np.array(array, dtype="<f4", order="C")
