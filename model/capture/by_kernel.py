"""Calls of PyTorch's fused kernels, `scaled_dot_product_attention` and `flex_attention`."""

import math

import torch
from torch import Tensor

from model.capture.batches import comes_from_elsewhere, rows_of
from model.capture.node import Node, require_intact, tensors_of
from model.capture.seen import Seen
from model.capture.stages import Stages

FLEX = "flex_attention"
KERNELS = frozenset({"scaled_dot_product_attention", FLEX})
BY_SIZE = "Its `score_mod` changes each score by its size: the change is kept as a bias."


def by_kernel(call: Node) -> Seen:
    """A call of one of `KERNELS`."""
    query, key, value = (
        call.argument(number, name) for number, name in enumerate(("query", "key", "value"))
    )
    require_intact(query, key, value)
    q, k, v = query.tensor, key.tensor, value.tensor
    if call.by.keywords.get("enable_gqa") or call.name == FLEX:
        k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    leading = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    cells = torch.Size((*leading, q.shape[-2], k.shape[-2]))
    stages, doubt = Stages(cells), ""
    mask = tensors_of(call.argument(3, "attn_mask"))
    if call.name == FLEX:
        doubt = _flexed(stages, call, q, k, v)
    elif call.argument(5, "is_causal", False):
        stages.forbid(torch.ones(cells[-2:], dtype=torch.bool).triu(1).to(q.device), -math.inf)
    elif mask is not None and mask.dtype is torch.bool:
        stages.forbid(~mask, -math.inf)
    elif mask is not None:
        stages.add(mask.float())
    scale = call.argument(5 if call.name == FLEX else 6, "scale")

    def rows(tensor: Tensor) -> Tensor:
        return tensor.expand(*leading, *tensor.shape[-2:]).reshape(-1, *tensor.shape[-2:])

    origin = rows_of(query, rows, leading)
    return Seen(
        query=rows(q),
        key=rows(k),
        value=rows(v),
        output=rows(call.tensor),
        weights=None,
        scale=1 / math.sqrt(q.shape[-1]) if scale is None else float(scale),
        cap=None,
        forbidden=_cells(stages.forbidden, cells),
        fills=tuple(stages.fills),
        added=_cells(stages.added, cells),
        sinks=None,
        rows=origin,
        crosses=comes_from_elsewhere(query, key, equally_many=cells[-2] == cells[-1]),
        doubts=(*filter(None, (origin.doubt, doubt)),),
    )


def _flexed(stages: Stages, call: Node, query: Tensor, key: Tensor, value: Tensor) -> str:
    """What `flex_attention` masks and adds, by its own functions; and what is not certain about that."""
    from torch._higher_order_ops.flex_attention import _math_attention_inner  # not public

    score_mod, block_mask, scale, options, *buffers = tensors_of(call.by.arguments[3:])

    def change(asking: Tensor) -> Tensor:
        given = score_mod, block_mask, scale, options, *buffers
        scores, changed = _math_attention_inner(asking, key, value, *given)
        return changed - scores

    added = change(query)
    hidden = added == -math.inf
    if hidden.any():
        stages.forbid(hidden, -math.inf)
    if bool((added != 0).any()):
        stages.add(added.masked_fill(hidden, 0.0))
    by_place = change(torch.zeros_like(query))
    return "" if torch.allclose(added, by_place, rtol=1e-4, atol=1e-4) else BY_SIZE


def _cells(tensor: Tensor | None, sizes: torch.Size) -> Tensor | None:
    """(N, T, S), or (1, T, S) where all rows have the same."""
    if tensor is None:
        return None
    if tensor.ndim <= 2 or tensor.shape[:-2].numel() == 1:
        return tensor.reshape(-1, *tensor.shape[-2:]).expand(1, *sizes[-2:])
    return tensor.expand(sizes).reshape(-1, *sizes[-2:])
