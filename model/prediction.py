"""From logits to what is expected next, always over the whole vocabulary."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.trace import Array


def probabilities(logits: Array) -> NDArray[np.float64]:
    """(…, vocabulary): softmax in float64; sums to 1."""
    shifted = logits.astype(np.float64) - logits.max(-1, keepdims=True)
    exponentials = np.exp(shifted)
    result: NDArray[np.float64] = exponentials / exponentials.sum(-1, keepdims=True)
    return result


def divergence(before: NDArray[np.float64], after: NDArray[np.float64]) -> float:
    """KL(before ‖ after) in nats: 0 where nothing changed (Kullback and Leibler 1951)."""
    tiny = np.finfo(np.float64).tiny
    ratio = np.log(np.maximum(before, tiny)) - np.log(np.maximum(after, tiny))
    return max(float((before * ratio).sum()), 0.0)


@dataclass(frozen=True)
class Expectation:
    """The likeliest next tokens of two runs and what they share out among the rest."""

    ids: tuple[int, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def others(self) -> tuple[float, float]:
        """What all tokens not listed share, before and after."""
        return 1 - sum(self.before), 1 - sum(self.after)


def expectation(before: Array, after: Array, count: int) -> Expectation:
    """The `count` likeliest tokens of either of two rows of logits, (vocabulary,) each."""
    one, other = probabilities(before), probabilities(after)
    best = np.argsort(-np.maximum(one, other), kind="stable")[:count]
    return Expectation(tuple(map(int, best)), tuple(one[best]), tuple(other[best]))
