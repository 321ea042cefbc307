"""Makes models of Hugging Face's library use our `attend`, through the library's two public registries.

One name stands for the attention function and for the function that makes its masks. Without the second
the mask would be None, and sliding windows would be lost.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask

from model.hub.cache import refuse_moved
from model.nn.attention import attend
from model.nn.places import Place
from model.nn.recorder import current

NAME = "attend"
PLACE = "attention_place"  # the attribute of an attention module that holds its place
_CARRIES_A_STATE = re.compile(r"Mamba\d?Mixer|RwkvSelfAttention|xLSTMLayer|mLSTM")
MASKED_BELOW = -1e8  # in a mask of numbers: what softmax gives no weight, however large the score


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
    window: int | None  # keys that a query reads at most, by a sliding window of the model


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
    *,
    softcap: float | None = None,
    position_bias: Tensor | None = None,
    s_aux: Tensor | None = None,
    sliding_window: int | None = None,
    **_: object,
) -> tuple[Tensor, None]:
    """The attention function that the library calls: (B, H, T, D) vectors to (B, T, H, D)."""
    own = getattr(module, "scaling", None)
    if scaling == 1.0 and isinstance(own, float) and own != 1.0:
        # OPT has scaled its queries already: here the factor goes back to the scores.
        query, scaling = query / own, own
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    look_ahead = attention_mask is None and causal
    place = _place_of(module, look_ahead=look_ahead)
    if place.kind == "cross":
        position_bias = None  # T5 hands its cross-attention zeros
    mask, bias = _mask_and_bias(attention_mask, position_bias)
    refuse_moved(bias, place)
    if sliding_window is not None and not causal:
        sliding_window = 2 * sliding_window - 1  # the library counts the keys of one side
    output = attend(
        query,
        key,
        value,
        place,
        mask=mask,
        scale=scaling,
        cap=softcap,
        bias=bias,
        sinks=s_aux,
        window=sliding_window,
    )
    calls = _witness.get()
    if calls is not None:
        calls.append(
            Attended(len(calls), module, query, key, mask, look_ahead, output, sliding_window)
        )
    return output.transpose(1, 2).contiguous(), None


def _place_of(module: nn.Module, *, look_ahead: bool) -> Place:
    places: tuple[Place, ...] = getattr(module, PLACE, ())
    if len(places) > 1:  # its weights are used by several layers
        return places[current().turn(module, len(places))]
    return next(iter(places), Place("decoder", 0, "causal" if look_ahead else "self"))


def _mask_and_bias(mask: Tensor | None, bias: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """A mask of bool, True = may look, and what is added to the scores. A mask of numbers is both: its
    very negative ones hide, the others are added."""
    if mask is None or not mask.dtype.is_floating_point:
        return mask, bias
    allowed = mask > MASKED_BELOW
    added = mask.masked_fill(~allowed, 0.0)
    return allowed, added if bias is None else bias + added


def carries_a_state(body: nn.Module) -> str | None:
    """Why a model whose layers carry a state between tokens has no attention to show; None for others."""
    names = dict.fromkeys(type(part).__name__ for part in body.modules())
    found = next((name for name in names if _CARRIES_A_STATE.search(name)), None)
    if found is None or any(name.endswith("Attention") and name != found for name in names):
        return None
    return (
        f"it has no attention: its layers ({found}) carry a state from token to token, and no token "
        "weighs the others"
    )


def register() -> None:
    """Registers the name with the library."""
    AttentionInterface.register(NAME, hub_attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)
