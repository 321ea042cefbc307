"""How one call of attention is computed: by PyTorch's kernel, or step by step.

Axes: B batch, H heads, T queries, S keys, D width of a head.
"""

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from model.nn.intervention import UNCHANGED, Intervention, WeightSet
from model.nn.masks import causal_mask
from model.nn.recorder import AttentionCall
from model.nn.weights_by_hand import refuse_masked, with_weights_set

BLOCK = 2**22  # scores that are in memory at once, where the kernel keeps none


def look_ahead_mask(query: Tensor, key: Tensor) -> Tensor:
    return causal_mask(query.shape[-2], key.shape[-2]).to(query.device)


def _mask(call: AttentionCall) -> Tensor | None:
    return look_ahead_mask(call.query, call.key) if call.look_ahead else call.mask


def fused(call: AttentionCall, dropout: float) -> Tensor:
    """PyTorch's kernel, which keeps no scores. A bias travels in its mask of floats."""
    mask, added = call.mask, call.mask
    if call.bias is not None:
        mask = _mask(call)
        added = call.bias if mask is None else call.bias.masked_fill(~mask, -math.inf)
    output = F.scaled_dot_product_attention(
        call.query,
        call.key,
        call.value,
        attn_mask=added,
        dropout_p=dropout,
        is_causal=call.look_ahead and added is None,
        scale=call.scale,
        enable_gqa=call.groups > 1,
    )
    if mask is None:
        return output
    return output.masked_fill(~mask.any(-1, keepdim=True), 0.0)


def explicit(
    call: AttentionCall,
    intervention: Intervention,
    dropout: float,
    cells: Sequence[WeightSet] = (),
) -> tuple[Tensor, dict[str, Tensor]]:
    """The same function step by step, for what the kernel cannot compute or show."""
    key, value = call.key, call.value
    if call.groups > 1:
        key, value = (x.repeat_interleave(call.groups, 1) for x in (key, value))
    scores = call.query @ key.transpose(-2, -1)  # (B, H, T, S)
    masked = scores * call.scale
    steps = {"scores": scores}
    if call.cap is not None:
        steps["capped"] = masked = call.cap * torch.tanh(masked / call.cap)
    if call.bias is not None:
        steps["biased"] = masked = masked + call.bias
    mask = _mask(call)
    if mask is not None:
        masked = masked.masked_fill(~mask, call.mask_value)
    weights = softmax_rows(masked if call.sinks is None else _with_sinks(masked, call.sinks))
    if cells:
        refuse_masked(cells, mask, call.place.name)
        weights = with_weights_set(weights, cells)
    if call.sinks is not None:
        weights, steps["sink_weights"] = weights[..., :-1], weights[..., -1]
    dropped = (
        weights * _kept(weights, intervention, call.place.name) if intervention.dropout else weights
    )
    dropped = F.dropout(dropped, dropout)
    steps |= {"masked": masked, "weights": weights, "dropped": dropped}
    return dropped @ value, steps


def _with_sinks(masked: Tensor, sinks: Tensor) -> Tensor:
    """(B, H, T, S + 1): the masked scores, and each head's sink in the last column."""
    column = sinks.to(masked)[:, None, None].expand(*masked.shape[:-1], 1)
    return torch.cat([masked, column], -1)


def softmax_rows(masked: Tensor) -> Tensor:
    """Softmax over the keys; a row of nothing but minus infinity gives zeros instead of NaN."""
    empty = torch.isneginf(masked).all(-1, keepdim=True)
    return torch.softmax(masked.masked_fill(empty, 0.0), -1).masked_fill(empty, 0.0)


def _kept(weights: Tensor, intervention: Intervention, name: str) -> Tensor:
    """Dropout's factors (H, T, S): 0 with probability p, else 1/(1 - p). A seed and a name fix the draw, for
    all texts of a batch alike."""
    seed = zlib.crc32(f"{intervention.seed}:{name}".encode())
    draws = torch.rand(weights.shape[1:], generator=torch.Generator().manual_seed(seed))
    return ((draws >= intervention.dropout) / (1 - intervention.dropout)).to(weights)


def in_blocks(call: AttentionCall, dropout: float) -> Tensor:
    """What needs a number for each query and key, some queries at a time: for a long text they are many."""
    batch, heads, queries, _ = call.query.shape
    rows = max(BLOCK // (batch * heads * call.key.shape[-2]), 1)
    blocks = [call] if queries <= rows else _blocks(call, rows)
    outputs = [
        explicit(one, UNCHANGED, dropout)[0] if one.needs_steps else fused(one, dropout)
        for one in blocks
    ]
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs, -2)


def _blocks(call: AttentionCall, most: int) -> Iterator[AttentionCall]:
    """Calls of at most so many queries each."""
    mask = _mask(call)
    for start in range(0, call.query.shape[-2], most):
        these = slice(start, start + most)
        yield replace(
            call,
            query=call.query[..., these, :],
            mask=_rows(mask, these),
            bias=_rows(call.bias, these),
            look_ahead=False,
        )


def _rows(cells: Tensor | None, queries: slice) -> Tensor | None:
    """Some rows of what broadcasts to (B, H, T, S)."""
    if cells is None or cells.ndim < 2 or cells.shape[-2] == 1:
        return cells
    return cells[..., queries, :]
