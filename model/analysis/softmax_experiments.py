"""Four points of attention, measured on random scores and on a model's own: why scores are divided by
√d_k, how much gradient a softmax lets through, two ways to a causal mask, and the mask value."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from model.arithmetic.attention import entropy, mean_own_slope, own_slopes, softmax, softmax_slopes
from model.trace.arrays import Array, BoolArray, Wide, read_only

if TYPE_CHECKING:
    import torch

ScorePrecision = Literal["float32", "float16"]
NO_KEY = "A row has no key that it may attend to."
QUERIES = 400  # random rows behind every sampled number
LARGEST_SAMPLE = 2**26  # random numbers drawn at once


class Sharpness(NamedTuple):
    """Random scores and their softmax, averaged over the rows."""

    variance: float  # of the scores
    entropy: float  # of the weights, in nats
    largest: float  # weight of a row
    slope: float  # mean of p(1 - p): how a weight moves with its own score


class Spread(NamedTuple):
    """Scores of one width d_k, as they are and divided by √d_k."""

    width: int
    plain: Sharpness
    scaled: Sharpness


def spread(width: int, *, keys: int, seed: int, queries: int = QUERIES) -> Spread:
    """Independent standard normal queries and keys of one width: Var(q·k) = d_k. Each query has its own
    keys, so rows are independent; a seed fixes the draw.

    Source: Vaswani et al. 2017, 3.2.1, footnote. Raises ValueError for a sample of no or too many
    numbers.
    """
    if min(width, keys, queries) < 1 or queries * keys * width > LARGEST_SAMPLE:
        raise ValueError(f"Cannot sample {queries} rows of {keys} keys of width {width}.")
    draws = np.random.default_rng([seed, width])
    query = draws.standard_normal((queries, 1, width), np.float32)
    key = draws.standard_normal((queries, keys, width), np.float32)
    scores = (query * key).sum(-1, dtype=np.float64)  # (query, key)
    return Spread(width, _sharpness(scores), _sharpness(scores / math.sqrt(width)))


def _sharpness(scores: Wide) -> Sharpness:
    weights = softmax(scores)
    return Sharpness(
        variance=float(scores.var()),
        entropy=float(entropy(weights).mean()),
        largest=float(weights.max(-1).mean()),
        slope=float(own_slopes(weights).mean()),
    )


def slopes_by_spread(deviations: Sequence[float], *, keys: int) -> Wide:
    """(deviation,): the exact mean p(1 - p) of the softmax over normal scores of each standard
    deviation. Raises ValueError for fewer than one key."""
    if keys < 1:
        raise ValueError(f"There are {keys} keys; a softmax needs at least 1.")
    return np.array([mean_own_slope(keys, each) for each in deviations])


class Slopes(NamedTuple):
    """The derivatives of one row of weights by its scores."""

    weights: Wide  # (key,)
    jacobian: Wide  # (key, key): p_i(1 - p_i) on the diagonal, -p_i p_j beside it
    check: float  # largest |jacobian - what PyTorch's autograd gives|


def slopes(scores: Sequence[float]) -> Slopes:
    """The softmax of one row and its derivatives, held against autograd's. Raises ValueError for an
    empty row and for scores that are not finite."""
    row = np.asarray(scores, np.float64)
    if row.ndim != 1 or not row.size or not np.isfinite(row).all():
        raise ValueError(
            "A row of scores needs at least one number, and all of them must be finite."
        )
    import torch  # takes seconds to import: pages are drawn first

    weights = softmax(row)
    jacobian = softmax_slopes(weights)
    with torch.enable_grad():
        given = torch.autograd.functional.jacobian(
            lambda x: torch.softmax(x, -1), torch.tensor(row)
        )
    return Slopes(weights, jacobian, float(np.abs(given.numpy() - jacobian).max()))


@dataclass(frozen=True, eq=False)
class Routes:
    """Two ways to a masked softmax, in float32 as in a model."""

    before: Array  # (query, key): -inf before the softmax
    after: Array  # (query, key): softmax over all, then 0 where masked, then rows normalized
    lost: NDArray[np.bool_]  # (query,): rows whose allowed weights are all 0 on the second way

    @property
    def difference(self) -> float:
        """Largest |before - after| over the rows that are not lost."""
        gaps = np.abs(self.before - self.after)[~self.lost]
        return float(gaps.max()) if gaps.size else 0.0


def routes(scaled: Array, mask: BoolArray) -> Routes:
    """scaled scores (query, key) and a mask, True = may look.

    Exactly, both ways are equal. In float32 the second loses a row whose masked scores lie so far
    above the allowed ones that these get a weight of 0; such a row stays 0. Raises ValueError for a
    row with no key.
    """
    if not mask.any(-1).all():
        raise ValueError(NO_KEY)
    kept = np.where(mask, softmax(scaled), np.float32(0))
    sums = kept.sum(-1, keepdims=True)
    after = np.divide(kept, sums, out=np.zeros_like(kept), where=sums > 0)
    before = softmax(np.where(mask, scaled, np.float32(-np.inf)))
    return Routes(before, read_only(after), sums[:, 0] == 0)


class MaskValueEffect(NamedTuple):
    """What one mask value does to the weights of one head, computed in one precision."""

    mask_value: float
    precision: ScorePrecision
    before_scaling: bool
    stored: float  # the number that it is in that precision
    refused: bool  # whether PyTorch's masked_fill refuses it in that precision
    leaked: float  # largest weight on a masked key
    difference: float  # largest |weight - weight with -inf in float32|
    empty: float | None  # each weight of a row of masked keys only; None: 0/0


def mask_value_effect(
    scores: Array,
    mask: BoolArray,
    scale: float,
    mask_value: float,
    *,
    precision: ScorePrecision = "float32",
    before_scaling: bool = False,
) -> MaskValueEffect:
    """Raw scores (query, key), a mask (True = may look) and one mask value, in PyTorch's own kernels.
    Raises ValueError for a row with no key."""
    if not mask.any(-1).all():
        raise ValueError(NO_KEY)
    import torch  # takes seconds to import: pages are drawn first

    kind = {"float32": torch.float32, "float16": torch.float16}[precision]
    look = torch.tensor(mask)
    stored = torch.tensor(mask_value, dtype=torch.float64).to(kind)

    def weights_of(raw: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
        if before_scaling:
            return torch.softmax(torch.where(allowed, raw, stored) * scale, -1)
        return torch.softmax(torch.where(allowed, raw * scale, stored), -1)

    raw = torch.tensor(scores).to(kind)
    weights = weights_of(raw, look).float()
    exact = torch.softmax((torch.tensor(scores) * scale).masked_fill(~look, -math.inf), -1)
    nothing = weights_of(raw[:1], torch.zeros_like(look[:1]))[0].float()
    hidden = weights[~look]
    return MaskValueEffect(
        mask_value,
        precision,
        before_scaling,
        float(stored),
        refused=_refuses(mask_value, kind),
        leaked=float(hidden.max()) if hidden.numel() else 0.0,
        difference=float((weights - exact).abs().max()),
        empty=None if bool(nothing.isnan().any()) else float(nothing.max()),
    )


def _refuses(mask_value: float, kind: "torch.dtype") -> bool:
    import torch

    try:
        torch.zeros(1, dtype=kind).masked_fill(torch.ones(1, dtype=torch.bool), mask_value)
    except RuntimeError:  # "value cannot be converted … without overflow"
        return True
    return False
