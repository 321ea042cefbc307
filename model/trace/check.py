"""The check of attention: its output recomputed from the recorded vectors, in blocks of queries that
fit the processor's cache."""

import math
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from model.system import deadline
from model.trace.arrays import Array, Mask
from model.trace.stages import soft_capped

BLOCK = 128  # queries
_STEPS = ("scores", "capped", "biased", "masked", "weights", "sink_weights")


def largest(gaps: Iterable[float]) -> float:
    """The largest of several gaps; not a number where one of them is none: that is no gap of zero, as
    Python's own `max` may have it."""
    return float(np.max([0.0, *gaps]))


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
    cap: float | None = None,
    bias: Array | None = None,
    sink: float | None = None,
) -> float:
    """Largest |softmax(q · kᵀ · scale, capped, biased, masked) · v − output| of one head.

    query (T, d_k), key (S, d_k), value (S, d_v), output (T, d_v), mask (T, S), True = may look.
    look_ahead stands for a look-ahead mask. bias: (T or 1, S). sink: the logit of the softmax's one more
    column. A row whose every key is masked by minus infinity is zero.
    """
    gaps = []
    for start in range(0, len(query), BLOCK):
        deadline.look()
        rows = slice(start, min(start + BLOCK, len(query)))
        keys = slice(0, len(key))
        if math.isinf(mask_value) and mask_value < 0:
            keys = _seen_by(rows, mask, look_ahead, len(key))
        scores = query[rows] @ key[keys].T
        scores *= np.float32(scale)
        if cap is not None:
            scores = soft_capped(scores, cap)
        if bias is not None:
            scores += bias[rows if len(bias) > 1 else slice(None), keys]
        if look_ahead:
            later = np.arange(keys.start, keys.stop) > np.arange(rows.start, rows.stop)[:, None]
            np.copyto(scores, np.float32(mask_value), where=later)
        elif mask is not None:
            np.copyto(scores, np.float32(mask_value), where=~mask[rows, keys])
        gap = np.abs(_context(scores, value[keys], sink) - output[rows])
        gaps.append(float(gap.max(initial=0.0)))
    return largest(gaps)


def gaps_of_steps(steps: Mapping[str, Array], derived: object, head: int) -> Iterator[float]:
    """The largest difference of each step of an explicit pass from the one that the vectors give, as a
    share of its largest number where that is above 1. Dropout is drawn by chance: no vectors give it.

    derived: the same record without steps.
    """
    for name in _STEPS:
        if name in steps:
            yield _share_apart(steps[name][head], getattr(derived, name)(head))


def _share_apart(recorded: Array, derived: Array) -> float:
    """Largest |recorded − derived|, as a share of the largest derived number where that is above 1.
    Equal infinities are no difference."""
    unequal = recorded != derived
    finite = np.abs(derived[np.isfinite(derived)])
    apart = np.abs(recorded[unequal] - derived[unequal]).max(initial=0.0)
    return float(apart / finite.max(initial=1.0))


def _seen_by(rows: slice, mask: Mask | None, look_ahead: bool, keys: int) -> slice:
    """From the first to the last key that some query of a block may look at: the others have no weight."""
    if look_ahead:
        return slice(0, min(rows.stop, keys))
    seen = np.arange(keys) if mask is None else np.flatnonzero(mask[rows].any(0))
    return slice(0, keys) if not seen.size else slice(int(seen[0]), int(seen[-1]) + 1)


def _context(masked: Array, value: Array, sink: float | None) -> Array:
    """softmax(masked, and a sink) · value; `masked` is overwritten."""
    least = -math.inf if sink is None else sink
    top = masked.max(-1, keepdims=True, initial=least)
    masked -= np.where(np.isneginf(top), 0, top)
    np.exp(masked, out=masked)
    sums = masked.sum(-1, keepdims=True)
    if sink is not None:
        sums += np.exp(np.float32(sink) - top)
    context: Array = np.divide(masked @ value, np.where(sums == 0, 1, sums), dtype=np.float32)
    return context
