"""What a change of the mechanism did: a changed run laid beside the unchanged one.

Both are traces of the same tokens. Nothing is run here: every number is taken from the two records.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.analysis.heads.statistics import entropy, largest_weight
from model.analysis.tokens.prediction import Distribution, likeliest, probabilities
from model.nn.config import Stack
from model.trace.arrays import Array, read_only
from model.trace.records import Attention, Token
from model.trace.trace import Trace

_TOGETHER = 64  # rows of logits that are read at once


@dataclass(frozen=True, eq=False)
class RowStatistics:
    """How sharply each row of weights looks. Weights are those before dropout."""

    entropy: Array  # (head, query): in nats
    largest: Array  # (head, query): the largest weight of the row
    empty: NDArray[np.bool_]  # (head, query): whether every key is masked, so that nothing is read


def row_statistics(attention: Attention) -> RowStatistics:
    """The rows of every head of one sub-layer, in full."""
    heads = [attention.weights(head) for head in range(attention.heads)]
    largest = np.stack([largest_weight(weights) for weights in heads])
    return RowStatistics(
        entropy=read_only(np.stack([entropy(weights) for weights in heads])),
        largest=read_only(largest),
        empty=read_only(largest == 0),
    )


@dataclass(frozen=True, eq=False)
class Movement:
    """How far each state of a stream lies from the same state of the unchanged run."""

    distance: Array  # (state, token): Euclidean length of the difference
    length: Array  # (state, token): Euclidean length of the unchanged state

    @property
    def share(self) -> Array:
        """(state, token): distance as a share of the unchanged length; 0 where both are 0."""
        known = np.where(self.length == 0, 1, self.length)
        return read_only(np.where(self.length == 0, 0, self.distance / known))


def movement(before: Trace, after: Trace, stack: Stack) -> Movement:
    """State by state, for one stack. Raises ValueError if the runs are not of the same tokens."""
    _same_tokens(before, after)
    pairs = list(zip(before.states[stack], after.states[stack], strict=True))
    wide = [(ours.astype(np.float64), theirs.astype(np.float64)) for ours, theirs in pairs]
    return Movement(
        read_only(np.stack([np.linalg.norm(theirs - ours, axis=-1) for ours, theirs in wide])),
        read_only(np.stack([np.linalg.norm(ours, axis=-1) for ours, _ in wide])),
    )


def predicted(trace: Trace) -> tuple[Token, ...]:
    """The tokens that the logits of a pass are predictions of, from the second token on."""
    return trace.tokens_of("decoder")[1:]


def losses(trace: Trace) -> NDArray[np.float64]:
    """(token - 1,): -ln p of each token that really follows, in nats (cross-entropy).

    Raises ValueError for an encoder, which predicts no next token. A single token has no losses.
    """
    if trace.prediction is None:
        raise ValueError(f"{trace.model} is an encoder: it predicts no next token.")
    following = [token.id for token in predicted(trace)]
    found = np.empty(len(following))
    # All rows of a large vocabulary are many bytes.
    for first in range(0, len(following), _TOGETHER):
        these = following[first : first + _TOGETHER]
        logs = _log_probabilities(trace.prediction.rows(first, first + len(these)))
        found[first : first + len(these)] = -logs[np.arange(len(these)), these]
    return found


def _log_probabilities(logits: Array) -> NDArray[np.float64]:
    """(…, vocabulary): logits less the logarithm of the sum of their exponentials."""
    wide = logits.astype(np.float64)
    wide = wide - wide.max(-1, keepdims=True)
    result: NDArray[np.float64] = wide - np.log(np.exp(wide).sum(-1, keepdims=True))
    return result


def rounding(trace: Trace, logits: Array | None = None) -> float:
    """How far single precision may move a log probability of a run. logits: those that it is taken from,
    where they are at hand; else the run's last rows.

    A score is rounded by a share ε of its largest possible size, and that moves its weights, and what the
    layer writes, by as large a share. The shares of all layers add up, and with them the logits move. It
    is an estimate of the first order, not a proof: a layer's error also moves the scores of later layers.
    """
    if trace.prediction is None:
        return 0.0
    shares = sum(max(1.0, _largest_score(attention)) for attention in trace.attention)
    if logits is None:
        rows = trace.prediction.shape[0]
        logits = trace.prediction.rows(max(0, rows - _TOGETHER), rows)
    return float(np.finfo(np.float32).eps * shares * np.abs(logits).max())


def _largest_score(attention: Attention) -> float:
    """What no scaled score of a layer exceeds: the longest query times the longest key of a head."""
    queries, keys = (
        np.linalg.norm(found, axis=-1).max(-1) for found in (attention.query, attention.key)
    )
    return float((queries * keys).max() * abs(attention.scale))


def probability_rounding(share: float, error: float) -> float:
    """How far a probability p may move where log probabilities move by `error`.

    By p · error, and by no more than all others together, (1 − p) · error, for the sum stays 1.
    """
    return min(share, max(1 - share, 0.0)) * error


def divergence_rounding(divergence: float, error: float) -> float:
    """How far a KL divergence may move where log probabilities move by `error`.

    Both distributions move it: by error · (2 E|ln p/q|) at most in the first order, and E|ln p/q| is at
    most D + √(2D) (Barron 1986).
    """
    return 2 * error * (divergence + (2 * divergence) ** 0.5) + error**2


def divergences(before: Trace, after: Trace) -> NDArray[np.float64]:
    """(token,): KL(before ‖ after) in nats of the prediction after each token, over the whole
    vocabulary; 0 where nothing changed. Raises ValueError for encoders and for other tokens."""
    if before.logits is None or after.logits is None:
        raise ValueError(f"{before.model} is an encoder: it predicts no next token.")
    _same_tokens(before, after)
    ours, theirs = _log_probabilities(before.logits), _log_probabilities(after.logits)
    apart: NDArray[np.float64] = np.maximum((np.exp(ours) * (ours - theirs)).sum(-1), 0.0)
    return apart


@dataclass(frozen=True)
class Ranked:
    """One token among the next ones: its probability and its place, 1 the likeliest, twice."""

    id: int
    before: float
    after: float
    place_before: int
    place_after: int


def ranked(before: Array, after: Array, count: int) -> tuple[Ranked, ...]:
    """The `count` likeliest tokens of either of two rows of logits (vocabulary,)."""
    ours, theirs = probabilities(before), probabilities(after)
    return tuple(
        Ranked(id_, float(ours[id_]), float(theirs[id_]), _place(ours, id_), _place(theirs, id_))
        for id_ in likeliest(ours, theirs, count).ids
    )


def _place(distribution: Distribution, id_: int) -> int:
    """How many tokens are likelier, plus one."""
    return int((distribution > distribution[id_]).sum()) + 1


def largest_difference(before: Trace, after: Trace) -> float:
    """Largest |after - before| over all states of all streams: 0 if a change changed nothing."""
    _same_tokens(before, after)
    return max(
        float(np.abs(theirs - ours).max())
        for stack, states in before.states.items()
        for ours, theirs in zip(states, after.states[stack], strict=True)
    )


def _same_tokens(before: Trace, after: Trace) -> None:
    for stack in before.states:
        ours = [token.id for token in before.tokens_of(stack)]
        theirs = [token.id for token in after.tokens_of(stack)]
        if ours != theirs:
            raise ValueError(
                f"The two runs read other tokens in the {stack}: {len(ours)} and {len(theirs)}."
            )
