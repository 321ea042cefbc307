"""Masks, bool, True = may look: of a model, of a batch, and of an intervention."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from model.nn.intervention import MASKS, Intervention

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


def causal_mask(
    queries: int, keys: int | None = None, device: torch.device | None = None
) -> Bool[Tensor, "query key"]:
    """Look-ahead mask, (query, key): True at and below the diagonal. With more keys than queries the first
    keys are those of tokens read before."""
    keys = keys or queries
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)


def padding_mask(real: Bool[Tensor, "batch token"]) -> Bool[Tensor, "batch 1 1 token"]:
    """True = real token, to a mask that hides padding from every query."""
    return real[:, None, None, :]


def window_mask(
    queries: int, keys: int, width: int, *, causal: bool, device: torch.device | None = None
) -> Bool[Tensor, "query key"]:
    """Sliding window, (query, key): True at the `width` keys that a query reads, itself included.

    Args:
        queries, keys: how many; query i stands at the place of key i.
        causal: itself and the last keys before it. Else as many keys before it as after it, so that an even
            width reads as many as the odd width below.
    """
    width = min(width, 2 * (queries + keys))  # a wider one reads no more
    aside = (width - 1) // 2
    before, after = (width - 1, 0) if causal else (aside, aside)
    whole = torch.ones(queries, keys, dtype=torch.bool, device=device)
    return whole.tril_(after).triu_(-before)


def windowed(
    mask: Bool[Tensor, "*_ #query #key"] | None,
    window: int | None,
    query: Float[Tensor, "batch head query width"],
    key: Float[Tensor, "batch key_head key width"],
    *,
    causal: bool,
) -> Bool[Tensor, "*_ #query #key"] | None:
    """A mask, and within it a layer's own sliding window if it has one. The queries are the last of the keys'
    tokens; where a cache has dropped some keys, the rest fits into the window.

    Args:
        mask: True = may look; None: the window alone hides.
        window: keys that a query reads; None: the layer has no window.
        query, key: of which the lengths and the device are read.
        causal: whether the window looks back only.
    """
    if window is None:
        return mask
    queries, keys = query.shape[-2], key.shape[-2]
    if queries == 1 < keys <= window:
        return mask
    near = window_mask(keys, keys, window, causal=causal, device=query.device)[-queries:]
    return near if mask is None else mask & near


def changed_mask(
    own: Bool[Tensor, "*_ #query #key"] | None,
    intervention: Intervention,
    query: Float[Tensor, "*head query width"],
    key: Float[Tensor, "*key_head key width"],
    *,
    causal: bool = False,
) -> Bool[Tensor, "*_ #query #key"] | None:
    """The mask of one attention sub-layer, after what an intervention changes in it; None where every query
    may look at every key.

    Args:
        own: the model's mask; None: it has none.
        intervention: whose hidden and blocked positions past the end change nothing.
        query, key: of which the lengths and the device are read.
        causal: whether the model hides the future there.
    """
    mask = MASKS[intervention.mask]
    if mask.removes_model_mask:
        own = None
    if not (mask.pattern or intervention.window or intervention.hidden or intervention.blocked):
        return own
    queries, keys = query.shape[-2], key.shape[-2]
    allowed = torch.ones(queries, keys, dtype=torch.bool)
    if mask.pattern:
        allowed = torch.from_numpy(mask.pattern(queries, keys))
    if intervention.window is not None:
        looks_back = mask.is_causal or (causal and not mask.removes_model_mask)
        allowed &= window_mask(queries, keys, intervention.window, causal=looks_back)
    allowed[:, [position for position in intervention.hidden if position < keys]] = False
    for at, to in intervention.blocked:
        if at < queries and to < keys:
            allowed[at, to] = False
    allowed = allowed.to(query.device, non_blocking=True)
    return allowed if own is None else own & allowed
