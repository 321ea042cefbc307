"""What the browser gets: the arrays of one attention layer, and all words about it.

Scores and weights need only queries and keys. Values and outputs are half of a layer's bytes, so those of a
large layer follow when a stage that shows them is opened. Until then their sums over the dimensions are
sent, so that the weights can be checked.
"""

import hashlib
import math
from collections.abc import Container, Sequence
from dataclasses import asdict
from threading import Lock
from weakref import ref

import numpy as np
from cachetools import LRUCache, cached
from numpy.typing import NDArray

from model.nn.places import Place
from model.snippets import Origin, code_of
from model.trace.records import Attention
from viz.explorer.code import code_json
from viz.explorer.stages import Stage, stages
from viz.notation.formulas import Formula, StageName, formulas
from viz.notation.labels import plotly_label, token_label
from viz.notation.names import sublayer_name
from viz.notation.theme import MASKED, QUANTITIES
from viz.notation.words import word_numbers

Array = NDArray[np.float32]
Json = dict[str, object]
BUDGET = 16_000_000  # bytes of arrays in one message; Streamlit's limit on a message is 20 MB
LIGHT = 1_000_000  # up to so many bytes, values and outputs are sent at once
KEPT = 32_000_000  # bytes of encoded layers in the cache
SHOW_VALUES = ("value", "output")  # the stages that need them
_LABEL = 14  # characters of a label beside a picture
_THEME: Json = {
    "quantities": {name: asdict(quantity) for name, quantity in QUANTITIES.items()},
    "masked": MASKED,
}


def payload(
    attention: Attention,
    *,
    queries: Sequence[str],
    keys: Sequence[str],
    head: int,
    check: float | None,
    baseline: Attention | None = None,
    stage: str = "weights",
    layers: Sequence[str] = (),
    origin: Origin | None = None,
) -> Json:
    """All the browser draws from except the selection. Arrays are numpy's; `packed` packs them.

    queries, keys: the text of each token. head: the chosen head; if all heads together are too large for
    one message, only a block of heads with this one is sent. check: largest difference between recomputed
    and recorded numbers of the whole trace; None: not known yet. baseline: the same layer of the unchanged
    run, for comparison. stage: the chosen stage, which decides whether the values of a large layer are
    sent. layers: names of the layers to choose from. origin: how queries, keys and values are made, and
    the intervention, for the code; None: not known.
    Raises ValueError if the tokens are not as many as the rows and columns, or if a vector is not finite.
    """
    _check_counts(attention, queries, keys, "attention")
    if baseline is not None:
        _check_counts(baseline, queries, keys, "baseline")
    runs = 1 if baseline is None else 2
    complete = stage in SHOW_VALUES or runs * _bytes(attention, complete=True) <= LIGHT
    sent = _sent_heads(attention, head, runs=runs, complete=complete)
    shown = stages_of(attention, baseline)
    has_mask = any(stage.name == "masked" for stage in shown)
    steps = formulas_of(attention, has_mask=has_mask)
    return {
        "layer": _layer(attention, sent, complete),
        "baseline": None if baseline is None else _layer(baseline, sent, complete),
        "layers": layer_choices(layers),
        "queries": _labels(queries),
        "keys": _labels(keys),
        "stages": [asdict(stage) for stage in shown],
        "formulas": {name: asdict(formula) for name, formula in steps.items()},
        "code": code_json(code_of(attention, origin, has_mask=has_mask)),
        "theme": _THEME,
        "check": check if check is not None and math.isfinite(check) else None,
        "checked": check is not None,
    }


def layer_choices(names: Sequence[str]) -> list[dict[str, str]]:
    """Name, label and title of each layer: "L3", or "dec L3", "cross L3" if there are several kinds."""
    places = [Place.named(name) for name in names]
    stacks = len({place.stack for place in places})

    def label(place: Place) -> str:
        group = "cross" if place.kind == "cross" else place.stack[:3]
        return place.label if stacks == 1 else f"{group} {place.label}"

    return [
        {"name": name, "label": label(place), "title": sublayer_name(name, stacks=stacks)}
        for name, place in zip(names, places, strict=True)
    ]


def stages_of(attention: Attention, baseline: Attention | None) -> tuple[Stage, ...]:
    """The stages of a layer, with or without the unchanged run for comparison."""
    return stages(
        kind=attention.kind,
        masked=_is_masked(attention),
        unmasked=baseline is None or not _is_masked(baseline),
        leaks=math.isfinite(attention.mask_value),
        scale=attention.scale,
    )


def formulas_of(attention: Attention, *, has_mask: bool) -> dict[StageName, Formula]:
    """The formula of each stage of a layer."""
    return formulas(
        scale=attention.scale,
        key_width=attention.key.shape[-1],
        keys=attention.key.shape[1],
        mask_value=attention.mask_value,
        projection=attention.projection,
        has_mask=has_mask,
    )


def _is_masked(attention: Attention) -> bool:
    """Whether any cell is masked."""
    return attention.mask is not None and not bool(np.all(attention.mask))


def parts(message: Json) -> tuple[str, ...]:
    """Names of the arrays in a message: equal names are equal arrays."""
    return tuple(str(layer["part"]) for layer in _layers(message).values())


def without_arrays(message: Json, held: Container[str]) -> Json:
    """The same message without the arrays that the browser has already."""
    return message | {
        name: {key: None if isinstance(fact, np.ndarray) else fact for key, fact in layer.items()}
        for name, layer in _layers(message).items()
        if layer["part"] in held
    }


def _layers(message: Json) -> dict[str, Json]:
    """The layer and, if there is one, the baseline, by their names in the message."""
    names = ("layer", "baseline")
    return {name: layer for name in names if isinstance(layer := message[name], dict)}


def _check_counts(
    attention: Attention, queries: Sequence[str], keys: Sequence[str], which: str
) -> None:
    rows, columns = attention.query.shape[1], attention.key.shape[1]
    if (rows, columns) != (len(queries), len(keys)):
        raise ValueError(
            f"The {which} has {rows} queries and {columns} keys; there are {len(queries)} query"
            f" tokens and {len(keys)} key tokens."
        )


def _sent_heads(attention: Attention, head: int, *, runs: int, complete: bool) -> range:
    """The block of heads that contains this head, as large as the budget allows."""
    count = attention.heads
    each = runs * _bytes(attention, complete=complete) // count
    block = min(max(BUDGET // max(each, 1), 1), count)
    first = min(max(head, 0), count - 1) // block * block
    return range(first, min(first + block, count))


def _bytes(attention: Attention, *, complete: bool) -> int:
    """Bytes of a layer's arrays: queries and keys and, if complete, values and outputs."""
    arrays = [attention.query, attention.key]
    arrays += [attention.value, attention.output] if complete else []
    cells = attention.heads * attention.query.shape[1] * attention.key.shape[1]
    return sum(array.nbytes for array in arrays) + (4 * cells if attention.drops else 0)


def _layer_bytes(layer: Json) -> int:
    return sum(part.nbytes for part in layer.values() if isinstance(part, np.ndarray))


@cached(
    LRUCache(KEPT, getsizeof=_layer_bytes),
    key=lambda attention, *part: (ref(attention), *part),
    lock=Lock(),
)
def _layer(attention: Attention, sent: range, complete: bool) -> Json:
    chosen = slice(sent.start, sent.stop)
    value, output = attention.value[chosen], attention.output[chosen]
    mask = attention.mask
    mask = mask if mask is None or mask.ndim == 2 else mask[chosen]
    dropped = [attention.dropped(head) for head in sent] if attention.drops else None
    facts: Json = {
        "name": attention.name,
        "label": attention.place.label,
        "kind": attention.kind,
        "heads": attention.heads,
        "ablated": list(attention.ablated),
        "weightsSet": [list(cell) for cell in attention.weights_set],
        "first": sent.start,
        "sent": len(sent),
        "scale": float(attention.scale),
        "mask_value": float(attention.mask_value) if math.isfinite(attention.mask_value) else None,
        "queries": attention.query.shape[1],
        "keys": attention.key.shape[1],
        "width": attention.key.shape[2],
        "valueWidth": attention.value.shape[2],
        "maskHeads": 1 if mask is None or mask.ndim == 2 else len(sent),
        "range": _ranges(attention),
        "query": floats(attention.query[chosen]),
        "key": floats(attention.key[chosen]),
        "mask": None if mask is None else np.packbits(mask, bitorder="little"),
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


def _ranges(attention: Attention) -> dict[str, float]:
    """The largest magnitude of each quantity over all heads of the layer."""
    scores = max(_magnitude(attention.scores(head)) for head in range(attention.heads))
    vectors = ("query", "key", "value", "output")
    ranges = {name: _magnitude(getattr(attention, name)) for name in vectors}
    return ranges | {"scores": scores, "scaled": scores * abs(attention.scale)}


def _magnitude(array: Array) -> float:
    return max(float(array.max()), -float(array.min())) if array.size else 0.0


def _labels(tokens: Sequence[str]) -> Json:
    return {
        "full": [token_label(token) for token in tokens],
        "short": [token_label(token, _LABEL) for token in tokens],
        "plotly": [plotly_label(token, _LABEL) for token in tokens],
        "word": word_numbers(tokens),
    }


def floats(array: Array) -> Array:
    """A copy of an array as contiguous little-endian float32.

    Raises ValueError if a number in it is not finite.
    """
    if not np.isfinite(array).all():
        raise ValueError("A vector of the attention layer contains a number that is not finite.")
    return np.array(array, dtype="<f4", order="C")
