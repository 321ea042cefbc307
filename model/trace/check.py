"""The output of attention recomputed from what was recorded, for the check: the formula once more, in
blocks of queries that stay in the processor's cache."""

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
BLOCK = 128  # queries


def largest_gap(
    query: Array,
    key: Array,
    value: Array,
    output: Array,
    *,
    scale: float,
    mask: NDArray[np.bool_] | None,
    look_ahead: bool,
    fill: float,
) -> float:
    """Largest |softmax(q · kᵀ · scale, masked) · v − output| of one head.

    query (T, d_k), key (S, d_k), value (S, d_v), output (T, d_v). mask: (T, S) bool, True = may look, or
    None. look_ahead: a query sees no later key; no mask is needed then. A row whose every key is masked
    by minus infinity counts as zeros.
    """
    largest = 0.0
    for start in range(0, len(query), BLOCK):
        rows = slice(start, min(start + BLOCK, len(query)))
        # Keys after the block's last query have no weight at all, unless the fill leaves them some.
        unseen = look_ahead and math.isinf(fill) and fill < 0
        keys = min(rows.stop, len(key)) if unseen else len(key)
        scores = query[rows] @ key[:keys].T
        scores *= np.float32(scale)
        if look_ahead:
            later = np.arange(keys) > np.arange(rows.start, rows.stop)[:, None]
            np.copyto(scores, np.float32(fill), where=later)
        elif mask is not None:
            np.copyto(scores, np.float32(fill), where=~mask[rows, :keys])
        made = _mixed(scores, value[:keys])
        largest = max(largest, float(np.abs(made - output[rows]).max(initial=0.0)))
    return largest


def _mixed(masked: Array, value: Array) -> Array:
    """softmax(masked) · value; `masked` is used up."""
    top = masked.max(-1, keepdims=True, initial=-math.inf)
    masked -= np.where(np.isneginf(top), 0, top)
    np.exp(masked, out=masked)
    sums = masked.sum(-1, keepdims=True)
    mixed: Array = np.divide(masked @ value, np.where(sums == 0, 1, sums), dtype=np.float32)
    return mixed
