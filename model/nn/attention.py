"""Attention: the one function that every attention layer of every model goes through.

Axes: B batch, H heads, T tokens, D width of a head, C = H·D width of the model.
"""

import math
import zlib

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.nn.config import Stack
from model.nn.intervention import Intervention
from model.nn.masks import causal_mask, changed_mask
from model.nn.recorder import AttentionTensors, Place, Recorder, current
from model.system import deadline


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    place: Place,
    *,
    mask: Tensor | None = None,
    scale: float | None = None,
) -> Tensor:
    """softmax(query · keyᵀ · scale, masked) · value (Vaswani et al. 2017, 3.2.1).

    query (B, H, T, D), key and value (B, H or fewer, S, D): fewer key heads are shared by equal
    groups of query heads. mask: bool, True = may look, broadcasts to (B, H, T, S); None with a
    causal place means the look-ahead mask. scale: the factor on the scores, 1/sqrt(D) if None.
    Returns (B, H, T, D). A row whose every key is masked gives zeros. The current recorder sees the
    vectors, and its intervention changes the pass. Raises where the pass is over its limits.
    """
    deadline.look()
    recorder = current()
    change = recorder.intervention.at(place.name)
    scale = _scale(query, scale, change)
    mask, causal = _mask(query, key, place, mask, scale, change, recorder.source)
    masked = causal or mask is not None
    if recorder.explicit or change.dropout or (masked and math.isfinite(change.fill)):
        full = _look_ahead(query, key) if causal else mask
        output, steps = _explicit(query, key, value, full, scale, change, place.name)
    else:
        output, steps = _fused(query, key, value, mask, causal, scale), {}
    if recorder.keeps:
        kept = steps if recorder.explicit or change.dropout else {}
        recorder.attention.append(
            AttentionTensors(
                place, query, key, value, output, scale, mask, causal, change.fill, kept
            )
        )
    return _without_ablated(output, recorder, place.name)


def _scale(query: Tensor, own: float | None, change: Intervention) -> float:
    """The factor on the scores: the intervention's, else the model's own, else 1/sqrt(D)."""
    if change.scale is not None:
        return change.scale
    return 1 / math.sqrt(query.shape[-1]) if own is None else own


def _mask(
    query: Tensor,
    key: Tensor,
    place: Place,
    own: Tensor | None,
    scale: float,
    change: Intervention,
    source: Stack,
) -> tuple[Tensor | None, bool]:
    """The mask after the intervention; or None and True: the look-ahead mask, left to the kernel."""
    changed = change.mask != "model" or bool(change.hidden or change.blocked)
    if own is None and place.kind == "causal":
        # Not where the scale is 0 or less: PyTorch's kernel multiplies its look-ahead mask by it.
        if not changed and scale > 0:
            return None, True
        own = _look_ahead(query, key)
    if not changed:
        return own, False
    reads_source = place.kind == "cross" or place.stack == source
    return changed_mask(own, change, place, query, key, reads_source), False


def _look_ahead(query: Tensor, key: Tensor) -> Tensor:
    return causal_mask(query.shape[-2], key.shape[-2]).to(query.device)


def _grouped(query: Tensor, key: Tensor) -> bool:
    return query.shape[1] != key.shape[1]


def _fused(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, scale: float
) -> Tensor:
    output = F.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=mask,
        is_causal=causal,
        scale=scale,
        enable_gqa=_grouped(query, key),
    )
    if mask is None:
        return output
    return output.masked_fill(~mask.any(-1, keepdim=True), 0.0)


def _explicit(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    scale: float,
    change: Intervention,
    name: str,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The same function step by step, for what the fused kernel cannot say or show."""
    if _grouped(query, key):
        groups = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    scores = query @ key.transpose(-2, -1)  # (B, H, T, S)
    masked = scores * scale
    if mask is not None:
        masked = masked.masked_fill(~mask, change.fill)
    weights = softmax_rows(masked)
    dropped = weights * _kept(weights, change, name) if change.dropout else weights
    steps = {"scores": scores, "masked": masked, "weights": weights, "dropped": dropped}
    return dropped @ value, steps


def softmax_rows(masked: Tensor) -> Tensor:
    """Softmax over the keys; a row of nothing but minus infinity gives zeros instead of NaN."""
    empty = torch.isneginf(masked).all(-1, keepdim=True)
    return torch.softmax(masked.masked_fill(empty, 0.0), -1).masked_fill(empty, 0.0)


def _kept(weights: Tensor, change: Intervention, name: str) -> Tensor:
    """Dropout's factors: 0 with probability p, else 1/(1 - p); always the same for a seed and place."""
    seed = zlib.crc32(f"{change.seed}:{name}".encode())
    draws = torch.rand(weights.shape, generator=torch.Generator().manual_seed(seed))
    return ((draws >= change.dropout) / (1 - change.dropout)).to(weights)


def _without_ablated(output: Tensor, recorder: Recorder, name: str) -> Tensor:
    """The output with zeros for the heads that are ablated, in the whole batch or in single rows."""
    heads = recorder.intervention.ablated_heads(name)
    if heads:
        output = output.clone()
        output[:, list(heads)] = 0.0
    kept = recorder.kept_heads.get(name)
    return output if kept is None else output * kept[:, :, None, None]


class MultiHeadAttention(nn.Module):
    """Projects, splits into heads, attends, merges, projects (Vaswani et al. 2017, 3.2.2)."""

    def __init__(
        self,
        width: int,
        heads: int,
        place: Place,
        *,
        qkv_bias: bool = True,
        output_bias: bool = True,
    ) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} cannot be split into {heads} equal heads.")
        self.heads = heads
        self.place = place
        self.query = nn.Linear(width, width, bias=qkv_bias)
        self.key = nn.Linear(width, width, bias=qkv_bias)
        self.value = nn.Linear(width, width, bias=qkv_bias)
        self.output = nn.Linear(width, width, bias=output_bias)

    def forward(
        self,
        x: Tensor,
        source: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        angles: Tensor | None = None,
    ) -> Tensor:
        """x (B, T, C) looks at source (B, S, C), or at itself; angles (T, D/2) rotate q and k."""
        source = x if source is None else source
        query, key, value = (
            self._split(self.query(x)),
            self._split(self.key(source)),
            self._split(self.value(source)),
        )
        if angles is not None:
            query, key = rotate(query, angles), rotate(key, angles)
        context = attend(query, key, value, self.place, mask=mask)
        return self.output(self._merge(context))

    def write_of(self, context: Tensor, head: int) -> Tensor:
        """What one head's context (T, D) adds to the stream through its slice of W_O: (T, C)."""
        width = context.shape[-1]
        return context @ self.output.weight[:, head * width : (head + 1) * width].T

    def _split(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        return x.view(B, T, self.heads, C // self.heads).transpose(1, 2)  # (B, H, T, D)

    def _merge(self, context: Tensor) -> Tensor:
        return context.transpose(1, 2).flatten(2)  # (B, T, C)


def rotate(x: Tensor, angles: Tensor) -> Tensor:
    """Rotary positions: turns each pair (x[i], x[i + D/2]) of (B, H, T, D) by angles (T, D/2).

    Source: Su et al. 2021, RoFormer, 3.2; pairs laid out in halves as in GPT-NeoX and Llama.
    """
    cosine, sine = angles.cos(), angles.sin()
    first, second = x.chunk(2, -1)
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], -1)
