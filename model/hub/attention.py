"""Our `attend` in models of Hugging Face's library, through the library's two public registries; its
key–value cache; and the terms of DeBERTa's disentangled attention.

One name stands for the attention function and for the function that makes its masks. Without the second
the mask would be None, and sliding windows would be lost.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.cache_utils import (
    DynamicCache,
    DynamicLayer,
    DynamicSlidingWindowLayer,
    EncoderDecoderCache,
)
from transformers.masking_utils import sdpa_mask

from model.nn.attention import attend
from model.nn.config import Shape
from model.nn.key_value_cache import KEEPS_ALL, Eviction, Kept, KeyValueCache
from model.nn.masks import causal_mask
from model.nn.places import Place
from model.nn.recorder import current

# The library's key–value cache of a hub model, which keeps and drops tokens by our rule.
# The library continues the positions of a text from the tokens that its cache has seen, and makes its masks
# from what the cache says it holds. So its layers are ours: they count dropped tokens as seen.


class KeptLayer(DynamicLayer):
    """The keys and values of one layer, (B, H, S, D). window: of the model's own sliding attention."""

    def __init__(self, window: int | None) -> None:
        super().__init__()
        self.own = Eviction(window)
        self.is_sliding = window is not None
        self.seen = 0  # tokens so far, dropped ones included
        self.positions = torch.arange(0)

    def reset(self) -> None:
        self.keys = self.values = None
        self.is_initialized = False
        self.seen, self.positions = 0, torch.arange(0)

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        new = torch.arange(self.seen, self.seen + key_states.shape[-2])
        self.seen += len(new)
        self.positions = torch.cat([self.positions, new])
        keys, values = super().update(key_states, value_states, *args, **kwargs)
        return keys, values

    def get_seq_length(self) -> int:
        return self.seen

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """The number of keys of the next pass, and the position of the first, as if the kept keys stood side
        by side before the new ones. All that is kept may be read, so no mask of the library hides it."""
        kept = len(self.positions)
        return kept + query_length, self.seen - kept

    def drop(self, eviction: Eviction) -> None:
        """Drops what the next token cannot read."""
        kept = self.kept.left(eviction, self.seen)
        self.keys, self.values, self.positions = kept.key, kept.value, kept.positions

    @property
    def kept(self) -> Kept:
        if self.keys is None or self.values is None:
            raise ValueError("this layer has read nothing yet")
        return Kept(self.keys, self.values, self.positions, self.own)


def refuse_moved(bias: Tensor | None, place: Place) -> None:
    """Raises ValueError where numbers are added to scores by distance and keys may be dropped: the library
    counts the distance among the keys that are kept."""
    cache = current().cache
    if cache is None or cache.eviction.window is None or bias is None or place.kind != "causal":
        return
    if bool(bias.any()):
        raise ValueError(
            "This model adds numbers to its scores by distance, and the library counts the distance among "
            "the keys that are kept: no key can be dropped."
        )


class HubCache(KeyValueCache):
    """What the decoder of a hub model keeps of one text. places: by the number that the library gives a
    layer."""

    def __init__(
        self,
        config: Any,
        shape: Shape,
        places: Mapping[int, Place],
        eviction: Eviction = KEEPS_ALL,
    ) -> None:
        super().__init__(eviction)
        own = DynamicCache(config=config)
        if any(type(one) not in (DynamicLayer, DynamicSlidingWindowLayer) for one in own.layers):
            raise ValueError("Some of its layers keep something else than keys and values.")
        chunked = "chunked_attention" in (getattr(config, "layer_types", None) or ())
        if eviction.window and chunked:
            raise ValueError(
                "Some layers of this model read chunks of the text, and the library counts these among the "
                "keys that are kept: no key can be dropped."
            )
        self._layers = [KeptLayer(getattr(one, "sliding_window", None)) for one in own.layers]
        own.layers = list(self._layers)
        self._places = places
        self._ids: Tensor | None = None  # (1, T): what a decoder has read
        self._crossed = [KeptLayer(None) for _ in self._layers]
        self.library: DynamicCache | EncoderDecoderCache = own
        if shape == "encoder-decoder":
            crossed = DynamicCache()
            crossed.layers = list(self._crossed)
            self.library = EncoderDecoderCache(own, crossed)

    def prepared(self, body: Any, new: Tensor) -> dict[str, Any]:
        """What the library feeds a decoder with new tokens (1, T): all that were read where it begins the
        cache anew."""
        self._ids = new if self._ids is None else torch.cat([self._ids, new], -1)
        fed: dict[str, Any] = body.prepare_inputs_for_generation(
            self._ids, past_key_values=self.library, next_sequence_length=new.shape[-1]
        )
        if fed.get("past_key_values") is not self.library:
            self.read = 0
            for layer in self._layers:
                layer.reset()
        return fed

    @property
    def kept(self) -> dict[str, Kept]:
        found: dict[str, Kept] = {}
        for number, place in self._places.items():
            crossed = Place(place.stack, place.layer, "cross")
            layers = {place.name: self._layers, crossed.name: self._crossed}
            found |= {name: of[number].kept for name, of in layers.items() if of[number].seen}
        return found

    def advance(self, tokens: int) -> None:
        """As of any cache. Raises ValueError for a model that has put nothing into it (GPT of 2018)."""
        self.read, self.new = self.read + tokens, tokens
        if any(self._layers[number].seen != self.read for number in self._places):
            raise ValueError("This model keeps nothing of the tokens that it has read.")
        for number in self._places:
            self._layers[number].drop(self.eviction)


NAME = "attend"
PLACE = "attention_place"  # the attribute of an attention module that holds its place
_CARRIES_A_STATE = re.compile(r"Mamba\d?Mixer|RwkvSelfAttention|xLSTMLayer|mLSTM")
_CHANGES_NOTHING = {"position_ids", "cache_position"}  # of what is handed over: kernels use them
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
    indices: Tensor | None = None,
    **others: object,
) -> tuple[Tensor, None]:
    """The attention function that the library calls: (B, T, H, D), and no weights.

    Args:
        module: that calls it; its places tell where in the model it stands.
        query, key, value: (B, H, T, D); keys and values may have fewer heads.
        attention_mask: of bools, True = may look, or of numbers: very negative ones hide, the others are
            added. None: see `is_causal`.
        scaling: the factor on the scores; None: 1/√D.
        is_causal: whether the future is hidden where there is no mask; None: as the module says.
        softcap: scores become softcap · tanh(score / softcap).
        position_bias: added to the scores (T5); zeros in cross-attention.
        s_aux: (H,): the logit of each head's sink.
        sliding_window: keys that a query reads, of one side where it looks both ways.
        indices: (B, T, k): the keys that an indexer chose for each query (DeepSeek-V3.2). The library hides
            the others itself for the attention functions that it names, and hands them to any other one.

    Raises ValueError for a tensor that this function does not know: attention without it may be another one.
    """
    for name, given in others.items():
        if isinstance(given, Tensor) and name not in _CHANGES_NOTHING:
            raise ValueError(f"its attention reads {name!r}, which this app does not know")
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
    if indices is not None:
        mask = _chosen(indices, mask, query.shape[-2], key.shape[-2], causal=look_ahead)
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
        return places[current().call_index(module, len(places))]
    return next(iter(places), Place("decoder", 0, "causal" if look_ahead else "self"))


def _mask_and_bias(mask: Tensor | None, bias: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """A mask of bool, True = may look, and what is added to the scores. A mask of numbers is both: its
    very negative ones hide, the others are added."""
    if mask is None or not mask.dtype.is_floating_point:
        return mask, bias
    allowed = mask > MASKED_BELOW
    added = mask.masked_fill(~allowed, 0.0)
    return allowed, added if bias is None else bias + added


def _chosen(
    indices: Tensor, mask: Tensor | None, queries: int, keys: int, *, causal: bool
) -> Tensor | None:
    """A mask within which each query reads the keys of its indices (B, T, k) only. causal: whether the future
    is hidden where there is no mask."""
    chosen = torch.zeros(*indices.shape[:2], keys, dtype=torch.bool, device=indices.device)
    chosen = chosen.scatter(-1, indices.long(), True)[:, None]  # (B, 1, T, S)
    if mask is None and causal:
        mask = causal_mask(queries, keys, indices.device)
    return chosen if mask is None else mask & chosen


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


# The terms of DeBERTa's disentangled attention: each by the library's own function.
# Axes: H heads, T tokens, D width of a head.

TERMS = {"c2p": "content → position", "p2c": "position → content"}


def disentangled_terms(
    body: nn.Module, attention: Any, query: Tensor, key: Tensor
) -> dict[str, Tensor]:
    """(H, T, T) each: what a query adds for a distance, and a distance for a key, as they are added to the
    scaled scores.

    Args:
        body: of which the vectors of distances are taken.
        attention: the library's module; a copy of it computes the terms.
        query, key: (H, T, D).
    """
    encoder: Any = next(part for part in body.modules() if hasattr(part, "get_rel_embedding"))
    used = [term for term in TERMS if term in attention.pos_att_type]
    found = {}
    with torch.inference_mode():
        positions = encoder.get_rel_embedding()
        distances = encoder.get_rel_pos(query)
        for term in used:
            alone = copy(attention)  # its weights are shared
            alone.pos_att_type = [term]
            found[TERMS[term]] = alone.disentangled_attention_bias(
                query, key, distances, positions, 1 + len(used)
            )
    return found
