"""From logits to next tokens, always over the whole vocabulary."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.trace.arrays import Array, Wide

Distribution = Wide  # (…, vocabulary): each row sums to 1


def log_probabilities(logits: Array, divisor: float = 1.0) -> Wide:
    """(…, vocabulary): the logarithm of the softmax of logits divided by a temperature, in float64."""
    wide = logits.astype(np.float64) / divisor
    wide -= wide.max(-1, keepdims=True)
    result: Wide = wide - np.log(np.exp(wide).sum(-1, keepdims=True))
    return result


def probabilities(logits: Array) -> Distribution:
    """(…, vocabulary): softmax in float64."""
    return np.exp(log_probabilities(logits))


def temperature(logits: Array, divisor: float) -> Distribution:
    """(…, vocabulary): softmax of the logits divided by a temperature.

    Below 1 the likely tokens gain, above 1 the unlikely ones. Raises ValueError for a temperature
    that is not above 0. Source: Ackley, Hinton and Sejnowski 1985.
    """
    if not divisor > 0:
        raise ValueError(f"The temperature is {divisor:g}; it must be above 0.")
    return np.exp(log_probabilities(logits, divisor))


def divergence(before: Array, after: Array) -> Wide:
    """(…): KL(before ‖ after) in nats of the predictions of two sets of logits (…, vocabulary); 0 where
    they are equal (Kullback and Leibler 1951)."""
    ours, theirs = log_probabilities(before), log_probabilities(after)
    return np.maximum((np.exp(ours) * (ours - theirs)).sum(-1), 0.0)


def top_k(distribution: Distribution, count: int) -> Distribution:
    """(…, vocabulary): the `count` likeliest tokens, and those equal to the last of them, share all the
    probability. Raises ValueError for a count below 1. Source: Fan et al. 2018."""
    if count < 1:
        raise ValueError(f"Top-k keeps {count} tokens; it must keep at least 1.")
    place = max(distribution.shape[-1] - count, 0)
    last = np.partition(distribution, place, axis=-1)[..., place, None]
    return _renormalized(np.where(distribution >= last, distribution, 0.0))


def top_p(distribution: Distribution, share: float) -> Distribution:
    """(…, vocabulary): the fewest likely tokens that hold at least `share` of the probability
    ("nucleus"). Raises ValueError unless 0 < share <= 1. Source: Holtzman et al. 2020."""
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
    """How the next token is drawn: temperature, then top-k, then top-p, as in Hugging Face's library.

    The defaults keep the model's own probabilities. Raises ValueError for values that leave no token.
    """

    temperature: float = 1.0
    top_k: int | None = None  # None: every token stays
    top_p: float = 1.0

    def __post_init__(self) -> None:
        self.of(np.zeros(1, np.float32))

    def of(self, logits: Array) -> Distribution:
        """(…, vocabulary): the distribution to draw from; tokens that are cut have 0."""
        warmed = temperature(logits, self.temperature)
        return top_p(warmed if self.top_k is None else top_k(warmed, self.top_k), self.top_p)


@dataclass(frozen=True)
class Expectation:
    """The likeliest next tokens of two runs with their probabilities."""

    ids: tuple[int, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def others(self) -> tuple[float, float]:
        """The probability of all other tokens together, before and after."""
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
    """What each state of the stream predicts when read as the last one ("logit lens", nostalgebraist
    2020). The last row is the model's own prediction."""

    ids: NDArray[np.int64]  # (state, token): the likeliest next token
    shares: Distribution  # (state, token): its probability
    final: Distribution  # (state, token): probability of the token that the last state puts first
    difference: float  # largest |logit of the last state - logit of the model's output|


def lens(unembed: Callable[[Array], Array], states: Sequence[Array], logits: Array) -> Lens:
    """Reads each state (token, d_model) as a prediction, one at a time to save memory. logits: (token,
    vocabulary), the model's own at the same positions."""
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
