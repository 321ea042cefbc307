"""What the browser gets: one attention layer once, as compact text, and everything that names it.

Arrays travel as base64 of little-endian float32, masks as packed bits. Nothing that is not a finite
number is written as a number: a browser refuses the whole message otherwise.
"""

import base64
import math
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from viz.axes import plotly_label, token_label
from viz.explorer.stages import stages
from viz.formulas import formulas
from viz.theme import MASKED, QUANTITIES

Array = NDArray[np.float32]
Json = dict[str, object]
BUDGET = 8 * 2**20  # bytes of arrays in one message; Streamlit's limit on a message is 20 MB
_LABEL = 14  # characters of a label beside a picture


class AttentionRecord(Protocol):
    """What the explorer reads of one attention sub-layer (model.trace.Attention has it).

    Its arrays never change, and it is equal only to itself, so what is made of it can be kept.
    """

    def __hash__(self) -> int: ...

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> Literal["self", "causal", "cross"]: ...
    @property
    def layer(self) -> int: ...
    @property
    def heads(self) -> int: ...
    @property
    def scale(self) -> float: ...
    @property
    def fill(self) -> float: ...
    @property
    def query(self) -> Array: ...
    @property
    def key(self) -> Array: ...
    @property
    def value(self) -> Array: ...
    @property
    def output(self) -> Array: ...
    @property
    def mask(self) -> NDArray[np.bool_] | None: ...
    @property
    def ablated(self) -> tuple[int, ...]: ...
    def scores(self, head: int, /) -> Array: ...
    def weights(self, head: int, /) -> Array: ...
    def dropped(self, head: int, /) -> Array: ...


def payload(
    attention: AttentionRecord,
    *,
    queries: Sequence[str],
    keys: Sequence[str],
    head: int,
    check: float,
    baseline: AttentionRecord | None = None,
) -> Json:
    """Everything the browser draws from, but for the selection.

    queries, keys: the text of each token. head: the chosen head; where all heads of a long text are too
    much for one message, its block of heads is sent. check: largest difference of the whole trace.
    Raises ValueError if the tokens are not as many as the rows and columns, or if a vector is not finite.
    """
    _check_counts(attention, queries, keys, "attention")
    if baseline is not None:
        _check_counts(baseline, queries, keys, "baseline")
    sent = _sent_heads(attention, head, layers=1 if baseline is None else 2)
    masked = attention.mask is not None and not bool(np.all(attention.mask))
    return {
        "layer": _layer(attention, sent),
        "baseline": None if baseline is None else _layer(baseline, sent),
        "queries": _labels(queries),
        "keys": _labels(keys),
        "stages": [
            asdict(stage)
            for stage in stages(
                kind=attention.kind,
                masked=masked,
                leaks=math.isfinite(attention.fill),
                scale=attention.scale,
            )
        ],
        "formulas": {
            name: {"general": formula.general, "plain": formula.plain, "numeric": formula.numeric}
            for name, formula in formulas(
                scale=attention.scale,
                key_width=attention.key.shape[-1],
                keys=len(keys),
                fill=attention.fill,
            ).items()
        },
        "theme": {
            "quantities": {name: asdict(quantity) for name, quantity in QUANTITIES.items()},
            "masked": MASKED,
        },
        "check": check if math.isfinite(check) else None,
    }


def _check_counts(
    attention: AttentionRecord, queries: Sequence[str], keys: Sequence[str], which: str
) -> None:
    rows, columns = attention.query.shape[1], attention.key.shape[1]
    if (rows, columns) != (len(queries), len(keys)):
        raise ValueError(
            f"The {which} has {rows} queries and {columns} keys; there are {len(queries)} query"
            f" tokens and {len(keys)} key tokens."
        )


def _sent_heads(attention: AttentionRecord, head: int, layers: int) -> range:
    """The block of heads, as large as the budget allows, in which this head lies."""
    count = attention.heads
    arrays = [attention.query, attention.key, attention.value, attention.output]
    each = layers * (sum(array[0].nbytes for array in arrays))
    if _drops(attention):
        each += layers * attention.query.shape[1] * attention.key.shape[1] * 4
    block = min(max(BUDGET // max(each, 1), 1), count)
    first = min(max(head, 0), count - 1) // block * block
    return range(first, min(first + block, count))


@lru_cache(maxsize=4)  # the baseline's and the changed run's layer, of one or two readers
def _layer(attention: AttentionRecord, sent: range) -> Json:
    chosen = slice(sent.start, sent.stop)
    dropped = [attention.dropped(head) for head in sent] if _drops(attention) else None
    return {
        "name": attention.name,
        "label": f"L{attention.layer}",
        "kind": attention.kind,
        "heads": attention.heads,
        "ablated": list(attention.ablated),
        "first": sent.start,
        "sent": len(sent),
        "scale": float(attention.scale),
        "fill": float(attention.fill) if math.isfinite(attention.fill) else None,
        "queries": attention.query.shape[1],
        "keys": attention.key.shape[1],
        "width": attention.key.shape[2],
        "valueWidth": attention.value.shape[2],
        "query": encoded(attention.query[chosen]),
        "key": encoded(attention.key[chosen]),
        "value": encoded(attention.value[chosen]),
        "output": encoded(attention.output[chosen]),
        "mask": None if attention.mask is None else _bits(attention.mask, chosen),
        "maskHeads": 1 if attention.mask is None or attention.mask.ndim == 2 else len(sent),
        "dropped": None if dropped is None else encoded(np.stack(dropped)),
        "range": _ranges(attention),
    }


@lru_cache(maxsize=16)
def _drops(attention: AttentionRecord) -> bool:
    """Whether dropout changed the weights of this pass."""
    return not np.array_equal(attention.dropped(0), attention.weights(0))


def _ranges(attention: AttentionRecord) -> dict[str, float]:
    """The largest magnitude of each quantity over all heads of the layer."""
    scores = max(_magnitude(attention.scores(head)) for head in range(attention.heads))
    return {
        "query": _magnitude(attention.query),
        "key": _magnitude(attention.key),
        "value": _magnitude(attention.value),
        "scores": scores,
        "scaled": scores * abs(attention.scale),
        "output": _magnitude(attention.output),
    }


def _magnitude(array: Array) -> float:
    return max(float(array.max()), -float(array.min())) if array.size else 0.0


def _labels(tokens: Sequence[str]) -> Json:
    return {
        "full": [token_label(token) for token in tokens],
        "short": [token_label(token, _LABEL) for token in tokens],
        "plotly": [plotly_label(token, _LABEL) for token in tokens],
    }


def encoded(array: Array) -> str:
    """An array as base64 of little-endian float32, last axis fastest.

    Raises ValueError if a number in it is not finite.
    """
    if not np.isfinite(array).all():
        raise ValueError("A vector of the attention layer holds a number that is not finite.")
    return base64.b64encode(np.ascontiguousarray(array, dtype="<f4").tobytes()).decode("ascii")


def _bits(mask: NDArray[np.bool_], heads: slice) -> str:
    chosen = mask if mask.ndim == 2 else mask[heads]
    return base64.b64encode(np.packbits(chosen, bitorder="little").tobytes()).decode("ascii")
