"""Text written token by token."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from model.analysis.tokens.prediction import Distribution, Sampling
from model.trace.arrays import Array


@dataclass(frozen=True)
class Choice:
    """How a token is chosen from a distribution: the likeliest, or drawn with a seed."""

    sampling: Sampling
    seed: int | None = None  # None: greedy, always the likeliest

    def of(self, logits: Array, step: int) -> int:
        """The id chosen at a step, from 0, given the last logits, (vocabulary,). Seed, step and logits
        fix the choice."""
        if self.seed is None:
            return int(logits.argmax())
        return drawn(self.sampling.of(logits), uniform(self.seed, step))


def uniform(seed: int, step: int) -> float:
    """A random number from 0 up to 1, fixed by seed and step."""
    return float(np.random.default_rng((seed, step)).random())


def drawn(distribution: Distribution, point: float) -> int:
    """The token in whose share a point between 0 and 1 falls; shares lie end to end in order of id. A
    token with no share is never drawn."""
    ends = distribution.cumsum()
    return int(np.searchsorted(ends, point * ends[-1], side="right"))


def written(
    choose: Callable[[tuple[int, ...]], int], *, steps: int, end: int | None
) -> tuple[int, ...]:
    """The ids of the first `steps` steps, or up to and with `end`. `choose` gives the id that follows
    those written so far."""
    ids: tuple[int, ...] = ()
    while len(ids) < steps and (not ids or ids[-1] != end):
        ids += (choose(ids),)
    return ids
