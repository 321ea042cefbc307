"""Makes models of Hugging Face's library use our `attend`, through the library's two public registries.

One name stands for the attention function and for the function that makes its masks. Without the second
the mask would be None, and sliding windows would be lost.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask

from model.nn.attention import attend
from model.nn.places import Place

NAME = "attend"
PLACE = "attention_place"  # the attribute of an attention module that holds its place
_CHANGES_SCORES = {
    "softcap": "caps its attention scores",
    "position_bias": "adds a position bias to its attention scores",
    "s_aux": "adds a sink to each row of its attention scores",
}


@dataclass(frozen=True, eq=False)
class Attended:
    """One call of the attention function, before places are known."""

    at: int  # its place in the order of the pass
    module: nn.Module
    query: Tensor  # (B, H, T, D)
    key: Tensor  # (B, H or fewer, S, D)
    mask: Tensor | None
    causal: bool  # the look-ahead mask, left to the kernel
    output: Tensor  # (B, H, T, D)


_witness: ContextVar[list[object] | None] = ContextVar("witness", default=None)


@contextmanager
def witnessed(calls: list[object]) -> Iterator[None]:
    """Appends every call of the attention function in this context."""
    token = _witness.set(calls)
    try:
        yield
    finally:
        _witness.reset(token)


def hub_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    is_causal: bool | None = None,
    **others: object,
) -> tuple[Tensor, None]:
    """The attention function that the library calls: (B, H, T, D) vectors to (B, T, H, D).

    Raises ValueError, with a sentence, for a layer that does more with its scores than to scale and mask
    them.
    """
    for name, does in _CHANGES_SCORES.items():
        if others.get(name) is not None:
            raise ValueError(f"it {does}, which this app cannot show step by step")
    if attention_mask is not None and attention_mask.dtype.is_floating_point:
        raise ValueError("it adds numbers to its attention scores instead of masking them")
    own = getattr(module, "scaling", None)
    if scaling == 1.0 and isinstance(own, float) and own != 1.0:
        # OPT has scaled its queries already: here the factor goes back to the scores.
        query, scaling = query / own, own
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    look_ahead = attention_mask is None and causal
    place: Place = getattr(module, PLACE, None) or Place(
        "decoder", 0, "causal" if look_ahead else "self"
    )
    output = attend(query, key, value, place, mask=attention_mask, scale=scaling)
    calls = _witness.get()
    if calls is not None:
        calls.append(Attended(len(calls), module, query, key, attention_mask, look_ahead, output))
    return output.transpose(1, 2).contiguous(), None


def register() -> None:
    """Registers the name with the library."""
    AttentionInterface.register(NAME, hub_attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)
