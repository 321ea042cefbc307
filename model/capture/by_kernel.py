"""Calls of PyTorch's fused kernel, `scaled_dot_product_attention`."""

import math

import torch
from torch import Tensor

from model.capture.batches import comes_from_elsewhere, rows_of
from model.capture.node import Node, require_intact, tensors_of
from model.capture.seen import Seen
from model.capture.stages import Stages


def by_kernel(call: Node) -> Seen:
    """A call of `scaled_dot_product_attention`."""
    query, key, value = (
        call.argument(number, name) for number, name in enumerate(("query", "key", "value"))
    )
    require_intact(query, key, value)
    q, k, v = query.tensor, key.tensor, value.tensor
    if call.by.keywords.get("enable_gqa"):
        k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    leading = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    cells = torch.Size((*leading, q.shape[-2], k.shape[-2]))
    stages = Stages(cells)
    mask = tensors_of(call.argument(3, "attn_mask"))
    if call.argument(5, "is_causal", False):
        stages.forbid(torch.ones(cells[-2:], dtype=torch.bool).triu(1).to(q.device), -math.inf)
    elif mask is not None and mask.dtype is torch.bool:
        stages.forbid(~mask, -math.inf)
    elif mask is not None:
        stages.add(mask.float())
    scale = call.argument(6, "scale")

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
        doubts=(origin.doubt,) if origin.doubt else (),
    )


def _cells(tensor: Tensor | None, sizes: torch.Size) -> Tensor | None:
    """(N, T, S), or (1, T, S) where all rows have the same."""
    if tensor is None:
        return None
    tensor = tensor.expand(sizes[-2:]) if tensor.ndim < 2 else tensor
    if tensor.ndim <= 2 or tensor.shape[:-2].numel() == 1:
        return tensor.reshape(-1, *tensor.shape[-2:]).expand(1, *sizes[-2:])
    return tensor.expand(sizes).reshape(-1, *sizes[-2:])
