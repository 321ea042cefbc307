"""How far rounding moves the numbers of attention: bounds from the precision of a run and the sizes of its
numbers. Source: Higham 2002, "Accuracy and Stability of Numerical Algorithms", section 3.1: a sum of n
products is off by at most n · ε · the sum of their sizes."""

import numpy as np
from numpy.typing import NDArray

from model.trace.arrays import Wide
from model.trace.trace import Trace

SINGLE = float(np.finfo(np.float32).eps)
# Of half precision, by its name in `Trace.device`.
HALVES = {"bfloat16": 2.0**-7, "float16": 2.0**-10}
ROUNDINGS = 8  # of one number, in a formula that is taken entry by entry


def epsilon(trace: Trace) -> float:
    """The share by which a number of a run's precision is rounded at most."""
    return HALVES.get(trace.device.rpartition(", in ")[2], SINGLE)


def score_rounding(
    query: NDArray[np.floating],
    key: NDArray[np.floating],
    *,
    scale: float,
    precision: float = SINGLE,
) -> Wide:
    """(query,): how far rounding may move the scaled scores of each query. The products are added up in
    single precision; queries, keys and scores are kept in that of the run.

    Args:
        query: (T, d_k).
        key: (S, d_k).
        scale: the factor on the scores.
        precision: the share by which a number of the run is rounded.
    """
    terms = query.shape[1] * SINGLE + ROUNDINGS * precision
    longest = float(np.linalg.norm(key.astype(np.float64), axis=-1).max(initial=0.0))
    lengths = np.linalg.norm(query.astype(np.float64), axis=-1)
    return np.asarray(terms * abs(scale) * longest * lengths)


def weight_rounding(weights: NDArray[np.floating], scores: Wide, precision: float = SINGLE) -> Wide:
    """(query, key): how far weights move where the scores of their row move by so much, and by the rounding
    of the softmax itself. weights (T, S), scores (T,).

    Each e^score changes by a factor of at most e^±Δ, and so does their sum.
    """
    moved = np.expm1(np.minimum(2 * scores, 50.0))[:, None]
    own = weights.shape[-1] * SINGLE + ROUNDINGS * precision
    return np.asarray(np.minimum(weights.astype(np.float64) * (moved + own), 1.0) + SINGLE)
