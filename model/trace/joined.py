"""Passes that read one text with a cache, a few tokens each, as the one pass that they are together.

Axes: B batch, H heads, T tokens of a pass, S keys that it reads, D width of a head.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from model.nn.attention import look_ahead_mask
from model.nn.recorder import AttentionTensors, Recorder

CLOSE, ROUNDINGS = 1e-4, 8  # of numbers near 1: where keys are made anew of what a cache keeps
Named = TypeVar("Named")


class _Joiner:
    """Joins the tensors of several passes, each of them once: a norm's input is a state of the stream."""

    def __init__(self) -> None:
        self._joined: dict[object, Tensor] = {}

    def along(self, axis: int) -> Callable[[Sequence[Tensor]], Tensor]:
        def join(parts: Sequence[Tensor]) -> Tensor:
            if len(parts) == 1:
                return parts[0]
            known = axis, *((one.data_ptr(), one.shape, one.stride()) for one in parts)
            if known not in self._joined:
                self._joined[known] = torch.cat([*parts], axis)
            return self._joined[known]

        return join

    def fields(self, records: Sequence[Any], axis: int, *names: str) -> Any:
        """A record whose tensors of these names are those of all of them."""
        join, first = self.along(axis), records[0]
        given = {name: [getattr(one, name) for one in records] for name in names}
        return replace(first, **{k: join(v) for k, v in given.items() if v[0] is not None})


def joined(passes: Sequence[Recorder]) -> Recorder:
    """What one pass over the whole text would have recorded, each row as the pass of its token gave it.

    Args:
        passes: recorders of one text in their order, with one cache; none is explicit or deferred.

    Raises ValueError where a pass does not read the keys and values of those before it.
    """
    of, by_token = _Joiner(), -2
    join = of.along(by_token)
    stacks = passes[0].streams
    return replace(
        passes[0],
        cache=None,
        attention=[_attention(of, calls) for calls in _named(one.attention for one in passes)],
        norms=[
            of.fields(norms, by_token, "input", "mean", "inverse_deviation", "output")
            for norms in _named(one.norms for one in passes)
        ],
        streams={
            stack: [
                join(states)
                for states in zip(
                    *(one.streams[stack] for one in passes if stack in one.streams), strict=True
                )
            ]
            for stack in stacks
        },
        feed_forward=[
            of.fields(layers, by_token, "before", "hidden")
            for layers in _named(one.feed_forward for one in passes)
        ],
        experts=[
            of.fields(layers, 0, "logits", "weights", "chosen")
            for layers in _named(one.experts for one in passes)
        ],
        written={
            name: join([one.written[name] for one in passes if name in one.written])
            for name in passes[0].written
        },
        summands={
            stack: {
                name: join([one.summands[stack][name] for one in passes if stack in one.summands])
                for name in parts
            }
            for stack, parts in passes[0].summands.items()
        },
    )


def _named(passes: Iterable[Sequence[Named]]) -> list[list[Named]]:
    """The records of each name, in the order of the first pass: what an encoder ran ran once."""
    found: dict[object, list[Named]] = {}
    for records in passes:
        for one in records:
            found.setdefault(getattr(one, "name", None) or one.place.name, []).append(one)  # type: ignore[attr-defined]
    return [*found.values()]


def _attention(of: _Joiner, calls: Sequence[AttentionTensors]) -> AttentionTensors:
    """One sub-layer of all passes."""
    first, crosses = calls[0], calls[0].place.kind == "cross"
    whole = of.fields(calls, -2, "query", "output")
    if len(calls) == 1:
        return first
    if any((one.scale, one.cap) != (first.scale, first.cap) for one in calls):
        raise ValueError(
            f"{first.place.name} scales its scores by the length of the text: read it in one pass."
        )
    key, value = first.key, first.value
    rows = 0
    cells: list[tuple[slice, slice, AttentionTensors]] = []
    for call in calls:
        queries, keys = call.query.shape[-2], call.key.shape[-2]
        end = rows + queries
        begin = 0 if crosses else end - keys
        if begin < 0:
            raise ValueError(_other(first))
        for name, kept in (("key", key), ("value", value)):
            given = getattr(call, name)
            overlap = kept[..., begin:, :] if rows else given
            if not _alike(given[..., : overlap.shape[-2], :], overlap):
                raise ValueError(_other(first))
        if rows and not crosses:
            key = torch.cat([key, call.key[..., keys - queries :, :]], -2)
            value = torch.cat([value, call.value[..., keys - queries :, :]], -2)
        cells.append((slice(rows, end), slice(begin, begin + keys), call))
        rows = end
    shape = rows, key.shape[-2]
    allowed = torch.zeros(1, 1, *shape, dtype=torch.bool, device=key.device)
    for where, read, call in cells:
        mask = call.mask
        if call.look_ahead:
            mask = look_ahead_mask(call.query, call.key)
        allowed[..., where, read] = True if mask is None else _four(mask)[:1, :1]
    looks_ahead = first.look_ahead and bool((allowed == allowed.new_ones(shape).tril()).all())
    return replace(
        whole,
        key=key,
        value=value,
        mask=None if looks_ahead or allowed.all() else allowed,
        look_ahead=looks_ahead,
        bias=_bias(cells, shape),
    )


def _bias(
    cells: Sequence[tuple[slice, slice, AttentionTensors]], shape: tuple[int, int]
) -> Tensor | None:
    """What is added to the scores, (1, H or 1, …): 0 where a query has no such key."""
    first = cells[0][2].bias
    if first is None:
        return None
    bias = first.new_zeros(1, first.shape[1], *shape)
    for where, read, call in cells:
        if call.bias is not None:
            bias[..., where, read] = call.bias
    return bias


def _four(mask: Tensor) -> Tensor:
    return mask.reshape((1,) * (4 - mask.ndim) + mask.shape)


def _alike(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape:
        return False
    close = max(CLOSE, ROUNDINGS * torch.finfo(one.dtype).eps)
    gap = (one - other).abs().amax() if one.numel() else one.new_zeros(())
    return bool(gap <= close * other.abs().amax().clamp(min=1.0)) if one.numel() else True


def _other(call: AttentionTensors) -> str:
    return (
        f"What {call.place.name} has kept of the tokens before is not what it reads of them now, so its "
        "passes are not one: read the text in one pass."
    )
