"""From logits to what is expected next, always over the whole vocabulary."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.trace.arrays import Array

Distribution = NDArray[np.float64]  # (…, vocabulary): each row sums to 1


def probabilities(logits: Array) -> Distribution:
    """(…, vocabulary): softmax in float64; sums to 1."""
    return temperature(logits, 1.0)


def temperature(logits: Array, divisor: float) -> Distribution:
    """(…, vocabulary): softmax of the logits divided by a temperature; sums to 1.

    Below 1 the likely tokens gain, above 1 the unlikely ones. Raises ValueError for a temperature
    that is not above 0. Source: Ackley, Hinton and Sejnowski 1985.
    """
    if not divisor > 0:
        raise ValueError(f"The temperature is {divisor:g}; it must be above 0.")
    scores = logits.astype(np.float64)
    exponentials = np.exp((scores - scores.max(-1, keepdims=True)) / divisor)
    result: Distribution = exponentials / exponentials.sum(-1, keepdims=True)
    return result


def top_k(distribution: Distribution, count: int) -> Distribution:
    """(…, vocabulary): the `count` likeliest tokens share everything; those equal to the last of
    them stay too. Raises ValueError for a count below 1. Source: Fan et al. 2018."""
    if count < 1:
        raise ValueError(f"Top-k keeps {count} tokens; it must keep at least 1.")
    place = max(distribution.shape[-1] - count, 0)
    last = np.partition(distribution, place, axis=-1)[..., place, None]
    return _renormalized(np.where(distribution >= last, distribution, 0.0))


def top_p(distribution: Distribution, share: float) -> Distribution:
    """(…, vocabulary): the smallest set of likeliest tokens that holds at least `share` of the
    probability ("nucleus"); never empty. Raises ValueError for a share that is not above 0 and at
    most 1. Source: Holtzman et al. 2020."""
    if not 0 < share <= 1:
        raise ValueError(f"Top-p keeps a share of {share:g}; it must be above 0 and at most 1.")
    if share == 1:
        return distribution
    order = np.argsort(-distribution, axis=-1, kind="stable")
    ranked = np.take_along_axis(distribution, order, -1)
    likelier = ranked.cumsum(-1) - ranked  # what all likelier tokens hold together
    kept = np.where(likelier < share, ranked, 0.0)
    kept[..., 0] = ranked[..., 0]
    result = np.empty_like(distribution)
    np.put_along_axis(result, order, kept, -1)
    return _renormalized(result)


def _renormalized(shares: Distribution) -> Distribution:
    result: Distribution = shares / shares.sum(-1, keepdims=True)
    return result


@dataclass(frozen=True)
class Sampling:
    """How the next token is drawn: temperature, then top-k, then top-p, as Hugging Face does it.

    The defaults leave the model's own probabilities as they are. Raises ValueError for values that
    leave nothing to draw from.
    """

    temperature: float = 1.0
    top_k: int | None = None  # None: every token stays
    top_p: float = 1.0

    def __post_init__(self) -> None:
        self.of(np.zeros(1, np.float32))

    def of(self, logits: Array) -> Distribution:
        """(…, vocabulary): what is drawn from; tokens that are cut have 0, each row sums to 1."""
        warmed = temperature(logits, self.temperature)
        return top_p(warmed if self.top_k is None else top_k(warmed, self.top_k), self.top_p)


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
    return likeliest(probabilities(before), probabilities(after), count)


def likeliest(before: Distribution, after: Distribution, count: int) -> Expectation:
    """The `count` likeliest tokens of either of two distributions, (vocabulary,) each."""
    best = np.argsort(-np.maximum(before, after), kind="stable")[:count]
    return Expectation(tuple(map(int, best)), tuple(before[best]), tuple(after[best]))


@dataclass(frozen=True, eq=False)
class Lens:
    """What each state of the stream would predict if it were the last ("logit lens", nostalgebraist
    2020). The last row is the model's own prediction."""

    ids: NDArray[np.int64]  # (state, token): the likeliest next token
    shares: Distribution  # (state, token): its probability
    final: Distribution  # (state, token): probability of the token that the last state puts first
    difference: float  # largest |logit of the last state - logit of the model's output|


def lens(unembed: Callable[[Array], Array], states: Sequence[Array], logits: Array) -> Lens:
    """Reads every state (token, d_model) as a prediction, one at a time, for a vocabulary is wide.

    logits: (token, vocabulary), the model's own at the same positions.
    """
    last = unembed(states[-1])
    final = last.argmax(-1)
    rows = [probabilities(unembed(state)) for state in states[:-1]] + [probabilities(last)]
    positions = np.arange(len(final))
    return Lens(
        ids=np.stack([row.argmax(-1) for row in rows]),
        shares=np.stack([row.max(-1) for row in rows]),
        final=np.stack([row[positions, final] for row in rows]),
        difference=float(np.abs(last - logits).max()),
    )
