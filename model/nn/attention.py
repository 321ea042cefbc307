"""Attention: the one function that every attention layer of every model goes through.

Axes: B batch, H heads, T tokens, D width of a head, C = H·D width of the model.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.nn.config import TransformerConfig
from model.nn.intervention import MASKS, UNCHANGED, Intervention, WeightSet
from model.nn.masks import causal_mask, changed_mask, windowed
from model.nn.places import Place
from model.nn.recorder import AttentionCall, AttentionTensors, Recorder, current
from model.nn.stages import SCORE_STAGES, SINKS, STAGES
from model.system import deadline

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


def with_weights_set(
    weights: Float[Tensor, "*batch head query key"], cells: Sequence[WeightSet]
) -> Float[Tensor, "*batch head query key"]:
    """Weights (…, H, T, S) with some set by hand: head, query, key, weight. The others of the row share what
    is left to 1 in their own proportions, a sink's column among them; where they are all 0 they stay so."""
    weights = weights.clone()
    for head, query in sorted({cell[:2] for cell in cells}):
        of_row = {key: weight for h, q, key, weight in cells if (h, q) == (head, query)}
        row = weights[..., head, query, :]  # a view
        for key in of_row:
            row[..., key] = 0.0
        others = row.sum(-1, keepdim=True)
        left = max(1.0 - sum(of_row.values()), 0.0)
        row *= torch.where(others > 0, left / torch.where(others > 0, others, 1.0), 0.0)
        for key, weight in of_row.items():
            row[..., key] = weight
    return weights


def refuse_masked(cells: Sequence[WeightSet], mask: Tensor | None, name: str) -> None:
    """Refuses a weight above 0 on a key that the mask hides."""
    if mask is None:
        return
    allowed = mask.reshape(-1, *mask.shape[-2:])
    for head, query, key, weight in cells:
        if weight:
            current().refuse(
                ~allowed[head % len(allowed), query, key],
                f"The weight of query {query} on key {key} in {name} cannot be set to {weight:g}: the "
                "mask hides that key.",
            )


# How one call of attention is computed: by PyTorch's kernel, or step by step.
# Axes: B batch, H heads, T queries, S keys, D width of a head.

BLOCK = 2**22  # scores that are in memory at once, where the kernel keeps none


def look_ahead_mask(
    query: Float[Tensor, "*head query width"], key: Float[Tensor, "*key_head key width"]
) -> Bool[Tensor, "query key"]:
    return causal_mask(query.shape[-2], key.shape[-2], query.device)


def _mask(call: AttentionCall) -> Tensor | None:
    return look_ahead_mask(call.query, call.key) if call.look_ahead else call.mask


def fused(call: AttentionCall, dropout: float) -> Float[Tensor, "batch head query value_width"]:
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
) -> tuple[Float[Tensor, "batch head query value_width"], dict[str, Tensor]]:
    """The same function step by step, for what the kernel cannot compute or show. Gives the output, and the
    steps (B, H, T, S) by name, with "sink_weights" (B, H, T) where there are sinks.

    Args:
        intervention: of which its own dropout is read; the rest of it is in the call already.
        dropout: the share of weights that training sets to zero.
        cells: weights set by hand. One above 0 where the mask hides the key refuses the pass.
    """
    steps, mask = score_steps(call)
    weights = softmax_rows(SINKS.joined(steps["masked"], call.sinks))
    if cells:
        refuse_masked(cells, mask, call.place.name)
        weights = with_weights_set(weights, cells)
    if call.sinks is not None:
        weights, steps["sink_weights"] = weights[..., :-1], weights[..., -1]
    dropped = (
        weights * _kept(weights, intervention, call.place.name) if intervention.dropout else weights
    )
    dropped = F.dropout(dropped, dropout)
    steps |= {"weights": weights, "dropped": dropped}
    return dropped @ _for_each_head(call.value, call), steps


def _for_each_head(shared: Tensor, call: AttentionCall) -> Tensor:
    """Keys or values, which groups of heads share, repeated for every head."""
    return shared if call.groups == 1 else shared.repeat_interleave(call.groups, 1)


def score_steps(call: AttentionCall) -> tuple[dict[str, Tensor], Tensor | None]:
    """Scores (B, H, T, S), those of each stage that it has, and "masked", of which the softmax is taken; and
    the mask, True = may look."""
    scores = call.query @ _for_each_head(call.key, call).transpose(-2, -1)
    masked = scores * call.scale
    steps = {"scores": scores}
    for stage in SCORE_STAGES:
        if stage.is_in(call):
            steps[stage.name] = masked = stage.tensors(masked, stage.of(call))
    mask = _mask(call)
    if mask is not None:
        masked = masked.masked_fill(~mask, call.mask_value)
    return steps | {"masked": masked}, mask


def softmax_rows(masked: Float[Tensor, "*row key"]) -> Float[Tensor, "*row key"]:
    """Softmax over the keys; a row of nothing but minus infinity gives zeros instead of NaN."""
    empty = masked.amax(-1, keepdim=True) == -math.inf
    return torch.softmax(masked.masked_fill(empty, 0.0), -1).masked_fill(empty, 0.0)


def _kept(weights: Tensor, intervention: Intervention, name: str) -> Tensor:
    """Dropout's factors (H, T, S): 0 with probability p, else 1/(1 - p). A seed and a name fix the draw, for
    all texts of a batch alike."""
    seed = zlib.crc32(f"{intervention.seed}:{name}".encode())
    draws = torch.rand(weights.shape[1:], generator=torch.Generator().manual_seed(seed))
    kept = (draws >= intervention.dropout) / (1 - intervention.dropout)
    return kept.to(weights, non_blocking=True)


def in_blocks(call: AttentionCall, dropout: float, *, by_kernel: bool = True) -> Tensor:
    """What needs a number for each query and key, some queries at a time: for a long text they are many.
    by_kernel: whether the kernel computes what it can."""
    batch, heads, queries, _ = call.query.shape
    rows = max(BLOCK // (batch * heads * call.key.shape[-2]), 1)
    blocks = [call] if queries <= rows else _blocks(call, rows)
    outputs = [
        fused(one, dropout)
        if by_kernel and not one.needs_steps
        else explicit(one, UNCHANGED, dropout)[0]
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


def attend(
    query: Float[Tensor, "batch head query width"],
    key: Float[Tensor, "batch key_head key width"],
    value: Float[Tensor, "batch key_head key value_width"],
    place: Place,
    *,
    mask: Bool[Tensor, "*_ #query #key"] | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
    cap: float | None = None,
    bias: Float[Tensor, "*_ #query #key"] | None = None,
    sinks: Float[Tensor, " head"] | None = None,
    window: int | None = None,
) -> Float[Tensor, "batch head query value_width"]:
    """softmax(query · keyᵀ · scale, masked) · value (Vaswani et al. 2017, 3.2.1), and the stages that
    later models put between: scores → scaled → capped → biased → masked → softmax with a sink.

    Args:
        query: (B, H, T, D).
        key, value: (B, H or fewer, S, D): fewer key heads are shared by equal groups of query heads.
        mask: True = may look, broadcasts to (B, H, T, S); None in a causal place: the look-ahead mask.
        scale: the factor on the scores; None: 1/√D.
        dropout: the share of weights that training sets to zero.
        cap: scaled scores become cap · tanh(scaled / cap) (Gemma 2).
        bias: added to them, broadcasts to (B, H, T, S) (T5, ALiBi).
        sinks: (H,): a logit of each head that joins every row in the softmax and whose weight goes
            nowhere (gpt-oss).
        window: how many keys the model's own sliding window lets a query read. The mask says which, so this
            is only kept.

    Returns (B, H, T, D); a row whose every key is masked is zero. The current recorder keeps the
    vectors, and its intervention changes the pass. Raises where the pass is over its limits.
    """
    deadline.look()
    recorder = current()
    query = recorder.through("query", place.name, query)
    key = recorder.through("key", place.name, key)
    value = recorder.through("value", place.name, value)
    if recorder.cache is not None and place.kind == "causal":
        mask = recorder.cache.narrowed(mask, query, key)
    call = AttentionCall(
        place=place,
        query=query,
        key=key,
        value=value,
        scale=1 / math.sqrt(query.shape[-1]) if scale is None else scale,
        mask=mask,
        cap=cap,
        bias=None if bias is None else _added(bias, query, recorder, place.name),
        sinks=sinks,
        window=window,
    )
    intervention = recorder.intervention_at(place, window)
    call = _changed(call, intervention)
    stepwise = recorder.explicit or intervention.dropout > 0
    cells = recorder.intervention.weights_in(place.name)
    steps: dict[str, Tensor] = {}
    if stepwise or cells:
        output, steps = explicit(call, intervention, dropout, cells)
    elif call.needs_steps or call.bias is not None:
        output = in_blocks(call, dropout)
    else:
        output = fused(call, dropout)
    if recorder.keeps:
        kept = steps if stepwise else {}
        recorder.attention.append(AttentionTensors(**vars(call), output=output, steps=kept))
    if heads := recorder.intervention.ablated_heads(place.name):
        output = output.clone()
        for head in heads:
            output[:, head] = 0.0
    return recorder.through("output", place.name, output)


def _changed(call: AttentionCall, intervention: Intervention) -> AttentionCall:
    """A call as an intervention changes it, with the mask that it runs with."""
    scale = call.scale if intervention.scale is None else intervention.scale
    causal = call.place.kind == "causal"
    queries, keys = call.query.shape[-2], call.key.shape[-2]
    # A new token that is read alone may look at all that is kept before it.
    look_ahead = causal and call.mask is None and not queries == 1 < keys
    # PyTorch's kernel multiplies its own look-ahead mask by the scale: 0 or less would spoil it.
    by_kernel = look_ahead and scale > 0 and not intervention.masks and queries == keys
    mask = call.mask
    if look_ahead and not by_kernel:
        mask = look_ahead_mask(call.query, call.key)
    left_out: dict[str, Any] = {one.field: None for one in STAGES if not one.of(intervention)}
    return replace(
        call,
        scale=scale,
        mask=changed_mask(mask, intervention, call.query, call.key, causal=causal),
        look_ahead=by_kernel,
        mask_value=intervention.fill,
        window=None if MASKS[intervention.mask].removes_model_mask else call.window,
        **left_out,
    )


def _added(bias: Tensor, query: Tensor, recorder: Recorder, name: str) -> Tensor:
    """A bias with four axes, of the scores' type and on their device, as the recorder lets it through."""
    return recorder.through(
        "bias", name, bias.to(query).reshape((1,) * (4 - bias.ndim) + bias.shape)
    )


class MultiHeadAttention(nn.Module):
    """Projects, splits into heads, attends, merges, projects (Vaswani et al. 2017, 3.2.2)."""

    def __init__(self, config: TransformerConfig, place: Place) -> None:
        super().__init__()
        if config.key_heads not in (0, config.heads):
            raise ValueError("In these layers each head has keys of its own: key_heads must be 0.")
        self.heads = config.heads
        self.place = place
        self.dropout = config.attention_dropout
        width, bias = config.d_model, config.qkv_bias
        self.query = nn.Linear(width, width, bias=bias)
        self.key = nn.Linear(width, width, bias=bias)
        self.value = nn.Linear(width, width, bias=bias)
        self.output = nn.Linear(width, width, bias=config.output_bias)
        self.scale = None if config.scaled_scores else 1.0
        self.cap = config.cap or None
        self.window = None if place.kind == "cross" else config.window_of(place.layer or 0) or None
        self.sinks = nn.Parameter(torch.zeros(config.heads)) if config.sinks else None
        for matrix in (self.query, self.key, self.value, self.output):
            nn.init.xavier_uniform_(matrix.weight)

    def forward(
        self,
        x: Float[Tensor, "batch token d_model"],
        source: Float[Tensor, "batch source d_model"] | None = None,
        *,
        mask: Bool[Tensor, "*_ #token #key"] | None = None,
        angles: Float[Tensor, "token half"] | None = None,
        bias: Float[Tensor, "head token key"] | None = None,
    ) -> Float[Tensor, "batch token d_model"]:
        """What x, (B, T, C), reads of a source, or of itself: (B, T, C).

        Args:
            source: (B, S, C): what keys and values are made of; None: x.
            mask: True = may look; None in a causal place: the look-ahead mask, else every key.
            angles: (T, D/2), in radians: they rotate queries and keys; None: nothing is rotated.
            bias: (H, T, S), added to the scaled scores.
        """
        query = self._split(self.query(x))
        if angles is not None:
            query = rotate(query, angles)
        cache = current().cache if self.place.stack == "decoder" else None
        made = partial(self._keys_and_values, x if source is None else source, angles)
        if cache is None:
            key, value = made()
        elif source is None:
            key, value = cache.with_new(self.place.name, *made(), self.window)
        else:
            key, value = cache.of_source(self.place.name, made)
        if bias is not None and cache is not None:
            bias = bias[..., cache.positions(self.place.name)]
        causal = self.place.kind == "causal"
        mask = windowed(mask, self.window, query, key, causal=causal)
        dropout = self.dropout if self.training else 0.0
        context = attend(
            query,
            key,
            value,
            self.place,
            mask=mask,
            scale=self.scale,
            dropout=dropout,
            cap=self.cap,
            bias=bias,
            sinks=self.sinks,
            window=self.window,
        )
        return self.output(context.transpose(1, 2).flatten(2))  # heads side by side: (B, T, C)

    def _keys_and_values(self, x: Tensor, angles: Tensor | None) -> tuple[Tensor, Tensor]:
        key, value = self._split(self.key(x)), self._split(self.value(x))
        return key if angles is None else rotate(key, angles), value

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, H, T, D)


def rotate(
    x: Float[Tensor, "*batch token width"], angles: Float[Tensor, "token half"]
) -> Float[Tensor, "*batch token width"]:
    """Rotary positions: turns each pair (x[i], x[i + D/2]) of (B, H, T, D) by angles (T, D/2).

    Source: Su et al. 2021, RoFormer, 3.2; pairs laid out in halves as in GPT-NeoX and Llama.
    """
    cosine, sine = angles.cos(), angles.sin()
    first, second = x.chunk(2, -1)
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], -1)
