"""A generation as one trace: the passes of a module that writes token after token, with a cache."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from model.capture.record import NEAR
from model.capture.watch import WatchedCall
from model.trace.collect import array_of, tensors_of
from model.trace.given import GivenTokens
from model.trace.joined import joined_calls
from model.trace.records import Attention

MORE = 10  # times the largest difference of a single pass: the joined one sums in another order


def joined_passes(calls: Sequence[WatchedCall]) -> list[WatchedCall]:
    """The calls of all passes of a module, each of its attention once: its queries are those of all passes,
    its keys those of the last one and those that a sliding window has dropped before.

    Raises ValueError where they are not the passes of one text, and where the joined record does not give
    what the module computed.
    """
    counts, found = Counter[tuple[int, str]](), dict[tuple[str, int], list[WatchedCall]]()
    for call in calls:
        which = call.turn, call.module
        found.setdefault((call.module, counts[which]), []).append(call)
        counts[which] += 1
    return [_joined(steps) for steps in found.values()]


def _joined(steps: Sequence[WatchedCall]) -> WatchedCall:
    first, records = steps[0], [step.record for step in steps]
    if len(steps) == 1:
        return first
    module, crosses = first.module, records[0].kind == "cross"
    if not crosses and any(one.sizes[1] == one.sizes[2] for one in records[1:]):
        raise ValueError(
            f"{module} reads the whole text anew for each token, without a cache: capture(module, ids) of "
            "what it wrote has all of it."
        )
    if len({one.heads for one in records}) > 1:
        raise ValueError(f"{module} has other heads in each pass, so its passes are not one.")
    named = [replace(one, place=replace(one.place, module=module)) for one in records]
    if any(not _same(one.sinks, records[0].sinks) for one in records):
        raise ValueError(f"{module} has another sink in each pass, so its passes are not one.")
    whole = joined_calls([*map(tensors_of, named)])
    mask = None if whole.mask is None else whole.mask[0].numpy()
    record = replace(
        records[0],
        place=records[-1].place,
        vectors=(array_of(whole.query), array_of(whole.key), array_of(whole.value)),
        output=array_of(whole.output),
        own_mask=mask if mask is None or len(mask) > 1 else mask[0],
        look_ahead=whole.look_ahead,
        bias=None if whole.bias is None else array_of(whole.bias),
    )
    rounding = max(MORE * max(one.check() for one in records), NEAR * np.abs(record.output).max())
    weights, apart, end = record.weights(), record.check() / max(rounding, 1e-30), 0
    for one in records:
        _, queries, keys = one.sizes
        end += queries
        begin = 0 if crosses else end - keys
        own = weights[:, end - queries : end, begin : begin + keys]
        apart = max(apart, float(np.abs(own - one.weights()).max()) / (MORE * NEAR))
    if not apart <= 1:
        raise ValueError(
            f"The joined passes of {module} differ from each alone by {apart:.1g} times what rounding allows."
        )
    return replace(first, record=record, call=None)


def _same(one: Any, other: Any) -> bool:
    return (one is None and other is None) or np.array_equal(one, other)


def words_of_generation(
    given: GivenTokens | Callable[[list[int]], GivenTokens] | None,
    source: Sequence[Tensor],
    passes: Sequence[Tensor | None],
    batch: int,
    records: Sequence[Attention],
) -> tuple[GivenTokens | None, GivenTokens | None]:
    """What names the tokens of the text and of the target that the passes read; None: their positions.

    Args:
        given: names of the text, or what makes names of ids; None: the ids are the names.
        source: tensors of the call; the first is the text's ids, (text, token).
        passes: the ids that each pass read, (text, token).
        batch: which text.
    """
    if given is not None and not callable(given):
        return given, None
    name = given or (lambda read: read)
    ids = [one[batch] for one in passes if one is not None and batch < len(one)]
    crosses = any(one.kind == "cross" for one in records)
    read = torch.cat(ids).tolist() if ids else []
    if len(read) != records[-1].sizes[1]:  # a module that is given something else
        return None, None
    if not crosses:
        return name(read), None
    (first, *_) = (*source, torch.empty(0))
    is_ids = first.ndim == 2 and not first.is_floating_point() and batch < len(first)
    return name(first[batch].tolist()) if is_ids else None, name(read)
