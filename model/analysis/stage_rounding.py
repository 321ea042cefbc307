"""How far rounding may move the numbers of each stage of two equal computations.

One rule: a stage may lie apart by the rounding of its own operation, and by what follows from rounding in the
numbers that it reads. Those were compared before, and count only where they were equal to rounding: a
difference is inherited, never rounding. What was not compared counts as equal. So no room follows from a
difference that nobody judged. Axes: head, query, key, token, d_k, d_model.
"""

from collections.abc import Mapping

import numpy as np

from model.analysis.difference_causes import AnyArray, ComparedStage, RunPair
from model.trace.arrays import Array, Wide
from model.trace.partial import PartialAttention
from model.trace.precision import ROUNDINGS, SINGLE, score_rounding
from model.trace.records import Attention, NormRecord

VectorPairs = Mapping[ComparedStage, RunPair]  # queries, keys and values, those that both runs have


def gaps(first: AnyArray, second: AnyArray) -> Wide:
    """|second − first|; infinite where one of both is no number."""
    apart = second.astype(np.float64)  # changed in place: of a long text it is large
    with np.errstate(invalid="ignore"):
        apart -= first
    np.abs(apart, out=apart)
    apart[np.isnan(apart)] = np.inf
    apart[first == second] = 0.0
    return apart


def is_equal(pair: RunPair) -> bool:
    """Whether all numbers are equal to rounding."""
    return bool((gaps(pair.first, pair.second) <= pair.room).all())


def within(pair: RunPair) -> Wide:
    """How far numbers lie apart by rounding, cell by cell: none of a difference that is more than that."""
    apart = gaps(pair.first, pair.second)
    return apart if (apart <= pair.room).all() else np.zeros_like(apart)


def drift(pair: RunPair) -> float:
    """The largest length of what is rounding, as a share of the vector's own. (token, width), or by head."""
    apart, first = within(pair), pair.first
    if first.ndim == 3:
        apart, first = side_by_side(apart), side_by_side(first)
    lengths = np.linalg.norm(first.astype(np.float64), axis=-1)
    least = np.median(lengths) + np.finfo(np.float32).tiny
    return float((np.linalg.norm(apart, axis=-1) / np.maximum(lengths, least)).max())


def side_by_side(vectors: AnyArray) -> AnyArray:
    """(head, token, d) to (token, head · d)"""
    return np.asarray(vectors.transpose(1, 0, 2).reshape(vectors.shape[1], -1))


def of_map(vectors: Array, read: float, terms: int, epsilon: float) -> Wide:
    """(token, width): of vectors that a linear map of so many terms gives. Terms of random signs add up to
    the root of their number, so a share of each may become √terms of the sum.

    Args:
        vectors: (token, width)
        read: how far what the map reads lies apart by rounding, as a share of its length.
        terms: of each sum.
        epsilon: the share by which a number is rounded.
    """
    sizes = np.sqrt(np.square(vectors.astype(np.float64)).mean(-1, keepdims=True))
    sizes = np.maximum(sizes, np.median(sizes))
    share = np.sqrt(terms) * read + terms * SINGLE
    return np.asarray(share * sizes + ROUNDINGS * epsilon * np.maximum(np.abs(vectors), sizes))


def of_heads(vectors: Array, read: float, terms: int, epsilon: float) -> Wide:
    """`of_map` for vectors of heads; a rotary angle is rounded by a share of itself.

    Args:
        vectors: (head, token, width).
        read, terms, epsilon: as in `of_map`.
    """
    flat = side_by_side(vectors)
    angles = 2 * SINGLE * np.arange(len(flat))[:, None]
    sizes = np.sqrt(np.square(flat.astype(np.float64)).mean(-1, keepdims=True))
    room = of_map(flat, read, terms, epsilon) + 2 * angles * sizes
    return np.asarray(room.reshape(len(flat), len(vectors), -1).transpose(1, 0, 2))


def of_norm(first: NormRecord, second: NormRecord, moved: Wide, epsilon: float) -> Wide:
    """(token, d_model): of what a norm makes, to the first order.

    Args:
        first, second: the norm of each run.
        moved: how far its input lies apart by rounding, (token, d_model).
        epsilon: the share by which a number is rounded.
    """
    inverse, own = first.inverse_deviation[:, None], np.abs(first.normalized)
    spread = np.abs(second.input - second.mean[:, None]).max(-1) * second.inverse_deviation
    share = ROUNDINGS * epsilon + np.sqrt(first.input.shape[1]) * SINGLE
    means = moved.mean(-1, keepdims=True), np.sqrt(np.square(moved).mean(-1, keepdims=True))
    sizes = share * spread[:, None] + 2 * inverse * (moved + means[0] + own * means[1])
    return np.asarray(sizes * np.abs(first.gamma) + ROUNDINGS * epsilon * np.abs(first.beta))


def of_scores(
    runs: tuple[Attention, Attention], head: int, pairs: VectorPairs, epsilon: float
) -> Wide:
    """(query,): of scaled scores, by rounding of their own and of queries and keys.

    Args:
        runs: the sub-layer of each run.
        pairs: the queries and keys of both runs, where both have them.
        epsilon: the share by which a number is rounded.
    """
    one = runs[0]
    queries, keys = one.sizes[1:]
    room = np.zeros(queries)
    for each in runs:
        if not {"query", "key"} & {*absent(each)}:
            query, key = each.query[head], each.key[head]
            room += score_rounding(query, key, scale=each.scale, precision=epsilon)
    if {"query", "key"} <= {*pairs}:
        moved, sizes = (
            [np.linalg.norm(vectors[head].astype(np.float64), axis=-1) for vectors in both]
            for both in zip(
                *((within(pairs[name]), pairs[name].first) for name in ("query", "key")),
                strict=True,
            )
        )
        room += abs(one.scale) * (moved[0] * sizes[1].max() + sizes[0] * moved[1].max())
    elif not room.any():  # the logarithms of weights are scores, but for a number of each row
        weights = one.weights(head)
        spread = -np.log(weights, where=weights > 0, out=np.zeros_like(weights)).min(-1)
        room += (keys * SINGLE + ROUNDINGS * epsilon) * np.maximum(np.abs(spread), 1.0)
    return room


def absent(attention: Attention) -> tuple[str, ...]:
    """The vectors that a record has not."""
    return attention.absent if isinstance(attention, PartialAttention) else ()


def of_output(runs: tuple[Attention, Attention], pairs: VectorPairs, epsilon: float) -> Wide:
    """(head, query, d_v or 1): of outputs, by what their own weights and values give."""
    one = runs[0]
    if not {"query", "key", "value"} <= {*pairs}:
        return of_heads(one.output, 0.0, one.sizes[2], epsilon) * 2
    rooms = []
    for head in range(one.heads):
        scores = of_scores(runs, head, pairs, epsilon)
        moved = np.expm1(np.minimum(2 * scores, 50.0)) + one.sizes[2] * SINGLE
        sizes = np.abs(one.value[head]).max()
        values = within(pairs["value"])[head].max()
        rooms.append(((moved + ROUNDINGS * epsilon) * sizes + values)[:, None])
    return np.stack(rooms)
