"""Makes a record of what was seen and checks it: recomputed from the record, the module's own numbers must
come out."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from model.capture.node import UnreadableError
from model.capture.seen import Seen
from model.nn.places import Kind, Place
from model.trace.arrays import Array, Mask, read_only
from model.trace.check import largest
from model.trace.given import is_look_ahead
from model.trace.records import Attention

NEAR = 1e-5  # of float32 numbers around 1
_UNPLACED = Place("decoder", 0, "self")


@dataclass(frozen=True)
class Gap:
    """The difference between what a record gives and what the module computed, relative to what rounding
    explains."""

    output: float
    weights: float  # 0 where the module computed none

    @property
    def holds(self) -> bool:
        return self.output <= 1 and self.weights <= 1


def recorded(seen: Seen) -> tuple[Attention, Gap]:
    """The record of one text's heads, placed nowhere yet. Raises UnreadableError where it does not hold."""
    output = _array(seen.output)
    if not all(np.isfinite(x).all() for x in (output, *map(_array, (seen.query, seen.key)))):
        raise UnreadableError("its own numbers are not finite")
    gap = None
    for record in _readings(seen, output):
        gap = gap_of(record, seen)
        if gap.holds:
            return record, gap
    if gap is None:
        raise UnreadableError("it has no heads")
    what, size = ("weights", gap.weights) if gap.weights > gap.output else ("output", gap.output)
    raise UnreadableError(
        f"its {what}, recomputed from what was seen, differs from its own by {size:.2g} times what rounding "
        "allows"
    )


def gap_of(record: Attention, seen: Seen) -> Gap:
    """A record against the weights and the output that the module itself computed.

    An output may be off by a share of the largest one. So may a weight, of the largest in its row; scores
    are rounded too, and large ones move it further.
    """
    precision = torch.finfo(seen.query.dtype if seen.weights is None else seen.output.dtype).eps
    precision = max(precision, torch.finfo(seen.output.dtype).eps)
    share = NEAR if precision <= torch.finfo(torch.float32).eps else 4 * precision
    most = max(float(np.abs(record.output).max()), torch.finfo(seen.output.dtype).tiny)
    output = record.check() / (share * most)
    weights = 0.0
    if seen.weights is not None:
        own = _array(seen.weights)
        weights = largest(
            _weights_gap(record, head, own[head], share) for head in range(record.heads)
        )
    return Gap(output, weights)


def _weights_gap(record: Attention, head: int, own: Array, share: float) -> float:
    found = record.weights(head)
    scores = np.abs(record.scaled(head)).max(-1, keepdims=True)
    most = np.maximum(found, own).max(-1, keepdims=True) * np.maximum(1, scores / 4)
    return float((np.abs(found - own) / np.clip(share * most, NEAR, share)).max())


def _readings(seen: Seen, output: Array) -> Iterator[Attention]:
    """The record for each number that a masked score may have become."""
    query, key, value = _array(seen.query), *_grouped(_array(seen.key), _array(seen.value))
    forbidden, added = seen.forbidden, seen.added
    sinks = None if seen.sinks is None else _array(seen.sinks)
    if sinks is not None and (sinks != sinks[:, :1]).any():
        raise UnreadableError("one more column joins its softmax, other for each query")
    mask = None if forbidden is None else _without_repeats(~forbidden.cpu().numpy())
    if mask is not None and mask.all():
        mask = None
    bias = None if added is None else _bias(added)
    looks_back = mask is not None and mask.ndim == 2 and is_look_ahead(mask)
    hides_future = mask is not None and not np.triu(mask, 1).any() and mask.shape[-2] > 1
    hides_future = hides_future and mask is not None and mask.shape[-1] == mask.shape[-2]
    kind: Kind = "cross" if seen.crosses else "causal" if looks_back or hides_future else "self"
    by_rule = looks_back and kind == "causal" and query.shape[1] == key.shape[1]
    fills = dict.fromkeys([float(np.float32(fill)) for fill in (*seen.fills, -np.inf)])
    for fill in fills if mask is not None else [-np.inf]:
        yield Attention(
            place=Place(_UNPLACED.stack, 0, kind),
            heads=len(query),
            scale=seen.scale,
            mask_value=fill,
            output=output,
            ablated=(),
            vectors=(query, key, value),
            own_mask=None if by_rule or mask is None else read_only(mask),
            look_ahead=by_rule,
            steps={},
            cap=seen.cap,
            bias=bias,
            sinks=None if sinks is None else read_only(sinks[:, 0].copy()),
            doubt=seen.doubt,
        )


def _array(tensor: Tensor) -> Array:
    """float32, of its own: the module may use its memory again."""
    return read_only(tensor.detach().to("cpu", torch.float32, copy=True).contiguous().numpy())


def _grouped(key: Array, value: Array) -> tuple[Array, Array]:
    """Keys and values with those that several heads share kept once."""
    heads = len(key)
    for groups in range(1, heads):
        if heads % groups == 0 and all(
            (x.reshape(groups, -1, *x.shape[1:]) == x[:: heads // groups, None]).all()
            for x in (key, value)
        ):
            return key[:: heads // groups], value[:: heads // groups]
    return key, value


def _without_repeats(mask: Mask) -> Mask:
    """(query, key) where all heads have the same mask, else (head, query, key)."""
    return mask[0] if (mask == mask[:1]).all() else mask


def _bias(added: Tensor) -> Array | None:
    """(head or 1, query or 1, key): without the axes over which it is repeated; None for zeros."""
    bias = _array(added)
    if (bias == bias[:1]).all():
        bias = bias[:1]
    if (bias == bias[:, :1]).all():
        bias = bias[:, :1]
    return read_only(bias.copy()) if bias.any() else None
