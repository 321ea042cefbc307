"""The check of attention: its output recomputed from the recorded vectors, in blocks of queries that
fit the processor's cache."""

import math

import numpy as np

from model.trace.arrays import Array, Mask

BLOCK = 128  # queries


def largest_gap(
    query: Array,
    key: Array,
    value: Array,
    output: Array,
    *,
    scale: float,
    mask: Mask | None,
    look_ahead: bool,
    mask_value: float,
) -> float:
    """Largest |softmax(q · kᵀ · scale, masked) · v − output| of one head.

    query (T, d_k), key (S, d_k), value (S, d_v), output (T, d_v), mask (T, S), True = may look.
    look_ahead stands for a look-ahead mask. A row whose every key is masked by minus infinity is zero.
    """
    largest = 0.0
    for start in range(0, len(query), BLOCK):
        rows = slice(start, min(start + BLOCK, len(query)))
        # Keys after the block's last query have no weight, unless the mask value leaves them some.
        unseen = look_ahead and math.isinf(mask_value) and mask_value < 0
        keys = min(rows.stop, len(key)) if unseen else len(key)
        scores = query[rows] @ key[:keys].T
        scores *= np.float32(scale)
        if look_ahead:
            later = np.arange(keys) > np.arange(rows.start, rows.stop)[:, None]
            np.copyto(scores, np.float32(mask_value), where=later)
        elif mask is not None:
            np.copyto(scores, np.float32(mask_value), where=~mask[rows, :keys])
        gap = np.abs(_context(scores, value[:keys]) - output[rows])
        largest = max(largest, float(gap.max(initial=0.0)))
    return largest


def _context(masked: Array, value: Array) -> Array:
    """softmax(masked) · value; `masked` is overwritten."""
    top = masked.max(-1, keepdims=True, initial=-math.inf)
    masked -= np.where(np.isneginf(top), 0, top)
    np.exp(masked, out=masked)
    sums = masked.sum(-1, keepdims=True)
    context: Array = np.divide(masked @ value, np.where(sums == 0, 1, sums), dtype=np.float32)
    return context
