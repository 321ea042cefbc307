"""What a few families need that no general rule gives.

Falcon with ALiBi is the one whose eager attention, which every model is held against, is not its own fused
one: the biases are added twice. So its attention is replaced, at load and in the loaded model alone, by the
same steps with our function in the middle.
Axes: B batch, T tokens, S keys, H heads, D width of a head, C width of the model.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn

from model.hub.attention import hub_attention
from model.hub.inline_attention import is_inline
from model.nn.config import PositionKind

Gave = tuple[Tensor, None]


def adapt(body: nn.Module) -> None:
    """Replaces the forward of every module that has an adapter. One that somebody else has replaced stays: it
    does not go through our `attend`, so its model is refused."""
    for module in body.modules():
        forward = _ADAPTERS.get(_class_of(module))
        if forward is not None and "forward" not in vars(module):
            module.forward = MethodType(forward, module)


@contextmanager
def unadapted(body: nn.Module) -> Iterator[None]:
    """The library's own forward of every module, for the library's own run."""
    found = {
        module: vars(module).pop("forward")
        for module in body.modules()
        if is_inline(module)
        or getattr(vars(module).get("forward"), "__func__", None) in _ADAPTERS.values()
    }
    try:
        yield
    finally:
        for module, forward in found.items():
            module.forward = forward


@contextmanager
def reference_mended(body: nn.Module) -> Iterator[None]:
    """Corrects the library's eager run where it differs from its own fused one: eager Falcon adds its ALiBi
    biases twice, once in the attention and once in the mask."""
    with ExitStack() as stack:
        for module in body.modules():
            if _class_of(module) == "falcon.FalconAttention":
                hook = module.register_forward_pre_hook(_without_alibi, with_kwargs=True)
                stack.callback(hook.remove)
        yield


def position_kind(attention: nn.Module) -> PositionKind | None:
    """How an attention module puts positions into its scores; None where it does not."""
    if isinstance(getattr(attention, "relative_attention_num_buckets", None), int):
        return "buckets"
    match _class_of(attention):
        case "bloom.BloomAttention" | "mpt.MptAttention":
            return "alibi"
        case "falcon.FalconAttention":
            return "alibi" if getattr(attention.config, "alibi", False) else None
        case "deberta_v2.DisentangledSelfAttention":
            return "disentangled" if attention.relative_attention else None
    return None


def _class_of(module: nn.Module) -> str:
    """The folder and the name of a class of the library: bloom.BloomAttention."""
    return f"{type(module).__module__.split('.')[-2:][0]}.{type(module).__name__}"


def _without_alibi(
    module: nn.Module, read: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    mask = named["attention_mask"]
    if named["alibi"] is None or mask is None:
        return read, named
    hides = mask == torch.finfo(mask.dtype).min
    return read, {**named, "attention_mask": mask.masked_fill(~hides, 0.0)}


def _falcon(
    self: Any,
    hidden_states: Tensor,
    alibi: Tensor | None,
    attention_mask: Tensor | None,
    layer_past: Any = None,
    position_embeddings: tuple[Tensor, Tensor] | None = None,
    **_: object,
) -> Gave:
    """Rotary positions, or ALiBi: there the scores are divided by √D after the bias is added."""
    fused = self.query_key_value(hidden_states)
    if self.new_decoder_architecture:  # each head of keys stands behind the queries that share it
        grouped = fused.unflatten(-1, (self.num_kv_heads, -1, self.head_dim))
        query, key, value = (
            grouped[..., :-2, :].flatten(2, 3),
            grouped[..., -2, :],
            grouped[..., -1, :],
        )
    else:
        query, key, value = self._split_heads(fused)
    query, key, value = (x.transpose(1, 2) for x in (query, key, value))
    if alibi is None and position_embeddings is not None:
        turn = sys.modules[type(self).__module__].apply_rotary_pos_emb
        query, key = turn(query, key, *position_embeddings)
    if layer_past is not None:
        key, value = layer_past.update(key, value, self.layer_idx)
    mask, bias = attention_mask, None
    if alibi is not None:
        bias = alibi.reshape(-1, self.num_heads, 1, alibi.shape[-1]) * self.inv_norm_factor
        if mask is not None and mask.dtype.is_floating_point:  # the biases are in it already
            mask = mask > torch.finfo(mask.dtype).min
    context, _none = hub_attention(
        self, query, key, value, mask, self.inv_norm_factor, position_bias=bias
    )
    return self.dense(context.flatten(2)), None


def _falcon_feed_forward(self: Any, x: Tensor) -> Tensor:
    """A copy: its layer adds attention's output to it in place, and what its last map gave is recorded."""
    gave: Tensor = self.dense_4h_to_h(self.act(self.dense_h_to_4h(x)))
    return gave.clone()


_ADAPTERS: dict[str, Callable[..., Gave | Tensor]] = {
    "falcon.FalconAttention": _falcon,
    "falcon.FalconMLP": _falcon_feed_forward,
}
