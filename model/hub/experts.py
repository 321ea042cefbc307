"""The sizes of experts and of latent attention, read from the weights of a model and from one pass."""

from typing import Any

from torch import Tensor, nn

from model.analysis.attribution.modules import is_map, weight_and_bias
from model.hub.parts import Anatomy, FeedForwardPart
from model.hub.probe import Probe

_LATENTS = {  # of our config, as the library names them on an attention
    "query_latent": "q_lora_rank",
    "key_latent": "kv_lora_rank",
    "turned_key": "qk_rope_head_dim",
    "value_size": "v_head_dim",
}
UNKNOWN = "its feed-forward layers are made of experts in a layout that this app does not know"


def latent_sizes(attention: nn.Module) -> dict[str, Any]:
    """Of queries, keys and values that are made of latent vectors (DeepSeek-V2, 2024); nothing of others."""
    if not isinstance(getattr(attention, "kv_lora_rank", None), int):
        return {}
    return {ours: getattr(attention, theirs, None) or 0 for ours, theirs in _LATENTS.items()}


def expert_sizes(anatomy: Anatomy, found: Probe) -> dict[str, Any]:
    """Of the feed-forward layers that choose experts; nothing of a model without. Raises ValueError where
    layers differ, or are not of gated experts alone behind layers without any."""
    feeds = [block.feed_forward for stack in anatomy.stacks for block in stack.blocks]
    routed = [part is not None and part.router is not None for part in feeds]
    if not any(routed):
        return {}
    dense = routed.index(True)
    kinds = [_layer(part, anatomy.width, found) for part in feeds[dense:] if part is not None]
    if not all(routed[dense:]) or any(kind != kinds[0] for kind in kinds):
        raise ValueError(UNKNOWN)
    return kinds[0] | {"dense_layers": dense}


def _layer(part: FeedForwardPart, width: int, found: Probe) -> dict[str, Any]:
    """The sizes of one layer of experts."""
    router, whole = part.router, part.whole
    gave = (call.whole for call in found.calls if call.module is router)
    chosen = [given[2] for given in gave if isinstance(given, tuple)]
    weight = getattr(router, "weight", None)
    if whole is None or not chosen or not isinstance(weight, Tensor):
        raise ValueError(UNKNOWN)
    known = {id(one) for one in (router.parameters() if router is not None else ())}
    inner = [one for one in whole.parameters() if id(one) not in known]
    stacked = [one for one in inner if one.ndim == 3]
    count, hidden = len(weight), min((one.numel() for one in stacked), default=0) // width
    hidden //= count
    maps = [one for one in whole.modules() if is_map(one) and one is not router]
    shared = sum(weight_and_bias(one)[0].numel() for one in maps)
    biases = sum(one.numel() for one in inner if one.ndim == 2 and len(one) == count)
    sizes = {
        "experts_read": chosen[0].shape[-1],
        "d_expert": hidden,
        "d_shared": shared // (3 * width),
        "expert_bias": biases > 0,
        "router_bias": getattr(router, "bias", None) is not None,
    }
    numbers = 3 * width * (count * hidden + sizes["d_shared"]) + biases
    fits = sum(one.numel() for one in inner) == numbers
    if not fits or biases not in (0, count * (2 * hidden + width)):
        raise ValueError(UNKNOWN)
    return sizes
