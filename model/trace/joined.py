"""Passes that read one text with a cache, a few tokens each, as the one pass that they are together.

Axes: B batch, H heads, T tokens of a pass, S keys that it reads, D width of a head.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, TypeVar

import torch
from torch import Tensor

from model.nn.attention import look_ahead_mask
from model.nn.recorder import AttentionTensors, Recorder

CLOSE, ROUNDINGS = 1e-5, 8  # of the largest number: some keys are made anew of what a cache keeps
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
        attention=[joined_calls(calls, of) for calls in _named(one.attention for one in passes)],
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
            name = one.place.name if isinstance(one, AttentionTensors) else vars(one)["name"]
            found.setdefault(name, []).append(one)
    return [*found.values()]


def joined_calls(
    calls: Sequence[AttentionTensors], joiner: _Joiner | None = None
) -> AttentionTensors:
    """One sub-layer of all passes, as one call of as many queries: the keys of each are the last ones so far,
    its own tokens among them; in cross-attention all have the same. Raises ValueError as `joined` does."""
    first, last = calls[0], calls[-1]
    if len(calls) == 1:
        return first
    name = first.place.module or first.place.name
    if any((one.scale, one.cap) != (first.scale, first.cap) for one in calls):
        raise ValueError(
            f"{name} scales its scores by the length of the text: read it in one pass."
        )
    whole: AttentionTensors = (joiner or _Joiner()).fields(calls, -2, "query", "output")
    counts = [one.query.shape[-2] for one in calls]
    key, value = (
        getattr(first, name)
        if first.place.kind == "cross"
        else torch.cat(
            [getattr(one, name)[..., -count:, :] for one, count in zip(calls, counts, strict=True)],
            -2,
        )
        for name in ("key", "value")
    )
    heads = max(1 if one.mask is None else _four(one.mask).shape[1] for one in calls)
    shape = sum(counts), key.shape[-2]
    allowed = torch.zeros(1, heads, *shape, dtype=torch.bool, device=key.device)
    added = [one.bias for one in calls if one.bias is not None]  # none of a text of one token
    bias = None
    if added:
        bias = added[0].new_zeros(1, max(one.shape[1] for one in added), *shape)
    for call, end in zip(calls, accumulate(counts), strict=True):
        queries, keys = call.query.shape[-2], call.key.shape[-2]
        rows, begin = slice(end - queries, end), 0 if first.place.kind == "cross" else end - keys
        read = slice(begin, begin + keys)
        if begin < 0 or not all(
            _alike(given, kept[..., read, :])
            for given, kept in ((call.key, key), (call.value, value))
        ):
            raise ValueError(
                f"What {name} has kept of the tokens before is not what it reads of them now, as where beams "
                "change places, so its passes are not one: read the text in one pass."
            )
        mask = look_ahead_mask(call.query, call.key) if call.look_ahead else call.mask
        allowed[..., rows, read] = True if mask is None else _four(mask)[:1]
        if bias is not None and call.bias is not None:
            bias[..., rows, read] = call.bias
    is_causal = last.place.kind == "causal" and bool(
        (allowed == look_ahead_mask(whole.query, key)).all()
    )
    return replace(
        whole,
        place=last.place,
        key=key,
        value=value,
        mask=None if is_causal or bool(allowed.all()) else allowed,
        look_ahead=is_causal,
        bias=bias,
    )


def _four(mask: Tensor) -> Tensor:
    """(B, H or 1, T or 1, S)"""
    return mask.reshape((1,) * (4 - mask.ndim) + mask.shape)


def _alike(one: Tensor, other: Tensor) -> bool:
    """Whether two differ by rounding at most."""
    close = max(CLOSE, ROUNDINGS * torch.finfo(one.dtype).eps)
    return one.shape == other.shape and bool(
        (one - other).abs().amax() <= close * other.abs().amax()
    )
