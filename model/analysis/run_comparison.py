"""What an intervention did: a changed run beside the unchanged one.

Both are traces of the same tokens. Nothing is run here: every number comes from the two records.
"""

import re
from threading import Lock
from typing import NamedTuple
from weakref import ref

import numpy as np
from cachetools import LRUCache, cached

from model.analysis.heads.statistics import entropy, head_weights
from model.analysis.tokens.prediction import divergence, log_probabilities
from model.nn.config import Stack
from model.nn.places import Head
from model.system.remote import asked
from model.trace.arrays import Array, BoolArray, Wide, read_only
from model.trace.precision import epsilon
from model.trace.records import Attention, Token
from model.trace.trace import Trace

_KEPT = 4_000_000  # bytes of losses that are remembered
_RUNS = 256  # whose rounding is remembered
_TOGETHER = 64  # rows of logits that are read at once: all of them can take gigabytes


class RowStatistics(NamedTuple):
    """How sharp each row of weights is, (head, query) each. Weights are those before dropout."""

    entropy: Array  # in nats
    largest: Array  # the largest weight of the row
    empty: BoolArray  # whether every key is masked


@asked
def row_statistics(attention: Attention) -> RowStatistics:
    """The rows of every head of one sub-layer, in full."""
    rows = [(entropy(weights), weights.max(-1)) for weights in head_weights([attention])]
    entropies, largest = (np.stack(each) for each in zip(*rows, strict=True))
    return RowStatistics(*map(read_only, (entropies, largest, largest == 0)))


class StreamMovement(NamedTuple):
    """How far the states of a stream lie from those of the unchanged run, (state, token) each."""

    distance: Array  # Euclidean length of the difference
    length: Array  # Euclidean length of the unchanged state
    share: Array  # distance / length; 0 where both are 0


@asked
def movement(before: Trace, after: Trace, stack: Stack) -> StreamMovement:
    """State by state, for one stack. Raises ValueError if the runs are not of the same tokens."""
    _same_tokens(before, after)
    pairs = zip(before.residual[stack], after.residual[stack], strict=True)
    wide = [(ours.astype(np.float64), theirs.astype(np.float64)) for ours, theirs in pairs]
    distance = np.stack([np.linalg.norm(theirs - ours, axis=-1) for ours, theirs in wide])
    length = np.stack([np.linalg.norm(ours, axis=-1) for ours, _ in wide])
    share = np.divide(distance, length, out=np.zeros_like(length), where=length > 0)
    return StreamMovement(*map(read_only, (distance, length, share)))


@asked
def predicted(trace: Trace) -> tuple[Token, ...]:
    """The tokens that the logits of a pass predict: all from the second on."""
    return trace.tokens_of("decoder")[1:]


@cached(
    LRUCache(_KEPT, getsizeof=lambda found: 1000 + found.nbytes),
    key=lambda trace: ref(trace),
    lock=Lock(),
)
@asked
def losses(trace: Trace) -> Wide:
    """(token - 1,): -ln p of each token that follows, in nats (cross-entropy). Raises ValueError for an
    encoder."""
    prediction = trace.require_prediction()
    following = [token.id for token in predicted(trace)]
    found = np.empty(len(following))
    for first in range(0, len(following), _TOGETHER):
        these = following[first : first + _TOGETHER]
        logs = log_probabilities(prediction.rows(first, first + len(these)))
        found[first : first + len(these)] = -logs[np.arange(len(these)), these]
    found.flags.writeable = False
    return found


def rounding(trace: Trace, logits: Array | None = None) -> float:
    """How far rounding to the precision of a run may move a log probability of it. logits: those that it
    comes from; None: the run's last rows.

    A score is rounded by a share ε of its largest possible size. That moves its weights, and what the
    layer writes, by as large a share. The shares of all layers add up and move the logits. This is a
    first-order estimate, not a proof: a layer's error also moves the scores of later layers.
    """
    if trace.prediction is None:
        return 0.0
    largest = _largest_last_logit(trace) if logits is None else float(np.abs(logits).max())
    return rounding_of_weights(trace) * largest


@cached(LRUCache(_RUNS), key=lambda trace: ref(trace), lock=Lock())
def _largest_last_logit(trace: Trace) -> float:
    prediction = trace.require_prediction()
    rows = prediction.shape[0]
    return float(np.abs(prediction.rows(max(0, rows - _TOGETHER), rows)).max())


@cached(LRUCache(_RUNS), key=lambda trace: ref(trace), lock=Lock())
def rounding_of_weights(trace: Trace) -> float:
    """How far rounding to the precision of a run may move a weight of it, as `rounding` says."""
    return epsilon(trace) * sum(max(1.0, _largest_score(one)) for one in trace.attention)


def _largest_score(attention: Attention) -> float:
    """A bound on a layer's scores, as rounding goes: the longest scaled query times the longest key of a
    head, and the largest bias."""
    queries, keys = attention.longest
    added = 0.0 if attention.bias is None else float(np.abs(attention.bias).max())
    return float((queries * keys).max() * abs(attention.scale)) + added


def probability_rounding(share: float, error: float) -> float:
    """How far a probability p may move where log probabilities move by `error`: by p · error, and by no
    more than all others together, (1 − p) · error."""
    return min(share, max(1 - share, 0.0)) * error


def divergence_rounding(divergence: float, error: float) -> float:
    """How far a KL divergence D may move where log probabilities move by `error`: to the first order by
    2 · error · E|ln p/q|, and E|ln p/q| is at most D + √(2D) (Barron 1986)."""
    return 2 * error * (divergence + (2 * divergence) ** 0.5) + error**2


@asked
def divergences(before: Trace, after: Trace) -> Wide:
    """(token,): `divergence` of the prediction after each token. Raises ValueError for encoders and for
    other tokens."""
    logits = before.require_prediction(), after.require_prediction()
    _same_tokens(before, after)
    return divergence(*(one.all for one in logits))


@asked
def largest_difference(before: Trace, after: Trace) -> float:
    """Largest |after - before| over all states of all streams."""
    _same_tokens(before, after)
    return max(
        float(np.abs(theirs - ours).max())
        for stack, states in before.residual.items()
        for ours, theirs in zip(states, after.residual[stack], strict=True)
    )


CELLS = 2**22  # cells of two runs that are compared at once: about 50 ms
CLEAR = 0.05  # a gain from which on words come first
SEEN = 0.005  # a smaller gain shows in no number
_MARK = re.compile(r"[\[<].*[\]>]")


def most_gained(before: Trace, after: Trace, head: Head) -> tuple[int, int] | None:
    """The cell (query, key) of a head whose weight a change raised most: what the change is about. None where
    no weight rose by `SEEN`, and where there are more than `CELLS` of them.

    If the change lifted a mask, it is one of the cells that were masked; and it is of two words, not of
    signs, where such a cell gained `CLEAR`. Raises ValueError where the runs read other tokens.
    """
    _same_tokens(before, after)
    old, new = (run.find(head[0]) for run in (before, after))
    _, queries, keys = new.sizes
    if queries * keys > CELLS:
        return None
    gain = new.weights(head[1]) - old.weights(head[1])
    masks = [run.mask_of(head[1]) for run in (old, new)]
    hidden = [np.zeros_like(gain, bool) if mask is None else ~mask for mask in masks]
    freed = hidden[0] & ~hidden[1]
    words = np.logical_and.outer(
        *([is_word(token) for token in of] for of in (after.queries_of(new), after.keys_of(new)))
    )
    for cells, least in ((freed & words, CLEAR), (words, CLEAR), (freed, SEEN), (~hidden[1], SEEN)):
        risen = np.where(cells, gain, -np.inf)
        if risen.size and risen.max() >= least:
            query, key = np.unravel_index(int(risen.argmax()), risen.shape)
            return int(query), int(key)
    return None


def is_word(token: Token) -> bool:
    """Whether a token is part of a text's words: neither a sign, such as a full stop, nor a mark as [SEP]."""
    return any(map(str.isalnum, token.text)) and not _MARK.fullmatch(token.text)


def _same_tokens(before: Trace, after: Trace) -> None:
    for stack in before.residual:
        ours = [token.id for token in before.tokens_of(stack)]
        theirs = [token.id for token in after.tokens_of(stack)]
        if ours != theirs:
            raise ValueError(
                f"The two runs read different tokens in the {stack}: {len(ours)} and {len(theirs)}."
            )
