"""Scores, masks, weights and outputs of attention.

Axes: rows are queries, columns are keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from model.arithmetic import Array64
from model.trace.arrays import softmax as softmax

if TYPE_CHECKING:
    from jaxtyping import Float

HIDDEN = float("-inf")
ROUNDING = 1e-5  # what rounding may take of the sum of a row


class AttentionSteps(NamedTuple):
    """The results of attention: scores, scaled and weights (query, key), output (query, d_v)."""

    scores: Array64
    scaled: Array64
    weights: Array64
    output: Array64


def softmax_slopes(weights: Float[np.ndarray, " key"]) -> Float[np.ndarray, "key key"]:
    """The derivative of each weight by each score: pᵢ(1−pᵢ) on the diagonal, −pᵢpⱼ elsewhere."""
    return np.diag(weights) - np.outer(weights, weights)


def own_slopes(weights: Float[np.ndarray, "*row key"]) -> Float[np.ndarray, "*row key"]:
    """The derivative of each weight by its own score, p(1−p): between 0 and 0.25."""
    return weights * (1.0 - weights)


def mean_own_slope(keys: int, spread: float) -> float:
    """The exact mean of p(1−p) over a softmax of independent normal scores.

    With w = t·e^score, φ = E[e^−w] and a = E[w·e^−w], the mean product of two weights is
    ∫ a²·φ^(n−2) d ln t, since 1/S² = ∫ t·e^(−tS) dt for the sum S of the exponentials. Averages and
    integral are sums on even grids, right to about 13 digits.
    """
    if spread == 0:
        return (keys - 1) / keys**2
    scores = np.arange(-10.0, 10.0, 0.25 / max(1.0, spread))
    density = np.exp(-0.5 * scores**2)
    density /= density.sum()
    step = 0.1 * max(1.0, spread)
    logarithms = np.arange(-10.0 * spread - 40.0, 10.0 * spread + 8.0, step)
    w = np.exp(np.minimum(logarithms[:, None] + spread * scores, 700.0))
    falling = np.exp(-w)
    products = ((w * falling) @ density) ** 2 * (falling @ density) ** max(keys - 2, 0)
    return float((keys - 1) * step * products.sum())


def entropy(weights: Float[np.ndarray, "*row key"]) -> Float[np.ndarray, "*row"]:
    """−Σ w·ln w of each row in nats; 0 if one key has all the weight, ln n if all n keys
    have the same. What a row lacks to 1, a sink takes: it counts as one more key."""
    left = 1 - weights.sum(axis=-1, keepdims=True)
    rows = np.concatenate([weights, np.where(left > ROUNDING, left, 0)], -1, dtype=weights.dtype)
    logarithms = np.log(rows, out=np.zeros_like(rows), where=rows > 0)
    return np.asarray(np.maximum(-(rows * logarithms).sum(axis=-1), 0.0))


def dot_products(
    query: Float[np.ndarray, "*head query width"], key: Float[np.ndarray, "*head key width"]
) -> Float[np.ndarray, "*head query key"]:
    """Every query times every key."""
    return query @ np.swapaxes(key, -1, -2)


def causal_mask(length: int) -> Float[np.ndarray, "query query"]:
    """1 where a query may attend: to itself and to earlier tokens. The upper right triangle is 0."""
    return np.tril(np.ones((length, length)))


def padding_mask(
    ids: Float[np.ndarray, "*text token"], pad: float = 0.0
) -> Float[np.ndarray, "*text token"]:
    """1 for each real token, 0 for each padding token."""
    return np.asarray(ids != pad, dtype=np.float64)


def masked(
    scores: Float[np.ndarray, "*row key"],
    allowed: Float[np.ndarray, "*_ #key"],
    mask_value: float = HIDDEN,
) -> Float[np.ndarray, "*row key"]:
    """The scores with every cell that is not allowed replaced by `mask_value`."""
    return np.where(allowed > 0, scores, mask_value)


def attend(
    query: Float[np.ndarray, "*head query width"],
    key: Float[np.ndarray, "*head key width"],
    value: Float[np.ndarray, "*head key value_width"],
    *,
    allowed: Float[np.ndarray, "*_ #query #key"] | None = None,
    mask_value: float = HIDDEN,
    scale: float | None = None,
) -> AttentionSteps:
    """Scaled dot-product attention, softmax(QKᵀ·scale)V.

    Args:
        allowed: 1 where a query may look, 0 elsewhere; None: every query looks at every key.
        mask_value: what stands for a scaled score that is hidden.
        scale: the factor on the scores; None: 1/√d_k.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.1.
    """
    scores = dot_products(query, key)
    scaled = scores * (1.0 / np.sqrt(query.shape[-1]) if scale is None else scale)
    weights = softmax(scaled if allowed is None else masked(scaled, allowed, mask_value))
    return AttentionSteps(scores, scaled, weights, weights @ value)


def split_heads(
    vectors: Float[np.ndarray, "token width"], heads: int
) -> Float[np.ndarray, "{heads} token {vectors.shape[1]//heads}"]:
    """Head 0 gets the first columns."""
    length, width = vectors.shape
    return vectors.reshape(length, heads, width // heads).transpose(1, 0, 2)


def merge_heads(by_head: Float[np.ndarray, "head token d"]) -> Float[np.ndarray, "token head*d"]:
    """The heads side by side again."""
    heads, length, width = by_head.shape
    return by_head.transpose(1, 0, 2).reshape(length, heads * width)
