"""Masks, bool, True = may look: of a model, of a batch, and of a change.

Axes: B batch, T tokens; queries and keys of one attention.
"""

import torch
from torch import Tensor

from model.nn.intervention import Intervention
from model.nn.recorder import Place


def causal_mask(queries: int, keys: int | None = None) -> Tensor:
    """Look-ahead mask, (queries, keys) bool: True at and below the diagonal, where a query may
    look."""
    return torch.ones(queries, keys or queries, dtype=torch.bool).tril()


def padding_mask(real: Tensor) -> Tensor:
    """(B, T) bool, True = real token, to a (B, 1, 1, T) mask that hides padded keys from every
    query."""
    return real[:, None, None, :]


def combined_mask(*masks: Tensor | None) -> Tensor | None:
    """Element-wise "and" of masks that broadcast; None stands for "everything may look"."""
    present = [mask for mask in masks if mask is not None]
    if not present:
        return None
    combined = present[0]
    for mask in present[1:]:
        combined = combined & mask
    return combined


def hidden_mask(hidden: frozenset[int], keys: int) -> Tensor | None:
    """(keys,) bool: False at the positions treated as padding. Positions past the end hide
    nothing."""
    if not hidden:
        return None
    mask = torch.ones(keys, dtype=torch.bool)
    mask[[position for position in hidden if position < keys]] = False
    return mask


def blocked_mask(blocked: frozenset[tuple[int, int]], queries: int, keys: int) -> Tensor | None:
    """(queries, keys) bool: False at the single edges that are cut."""
    if not blocked:
        return None
    mask = torch.ones(queries, keys, dtype=torch.bool)
    for query, key in blocked:
        if 0 <= query < queries and 0 <= key < keys:
            mask[query, key] = False
    return mask


def changed_mask(
    own: Tensor | None,
    change: Intervention,
    place: Place,
    query: Tensor,
    key: Tensor,
    reads_source: bool,
) -> Tensor | None:
    """The model's own mask after an intervention; None where every query may look at every key."""
    queries, keys = query.shape[-2], key.shape[-2]
    if change.mask == "none" and place.kind == "causal":
        own = None
    named = change.only is not None
    causal = change.mask == "causal" and (place.kind != "cross" or named)
    cuts = [
        causal_mask(queries, keys) if causal else None,
        hidden_mask(change.hidden, keys) if reads_source else None,
        blocked_mask(change.blocked, queries, keys),
    ]
    mask = combined_mask(own, *(None if cut is None else cut.to(query.device) for cut in cuts))
    return None if mask is None else mask.expand(*mask.shape[:-2], queries, keys)
