"""The library's key–value cache of a hub model, which keeps and drops tokens by our rule.

The library continues the positions of a text from the tokens that its cache has seen, and makes its masks
from what the cache says it holds. So its layers are ours: they count dropped tokens as seen.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import (
    DynamicCache,
    DynamicLayer,
    DynamicSlidingWindowLayer,
    EncoderDecoderCache,
)

from model.nn.config import Shape
from model.nn.key_value_cache import KEEPS_ALL, Eviction, Kept, KeyValueCache
from model.nn.places import Place
from model.nn.recorder import current


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
        self.read, self.new = self.read + tokens, tokens
        for number in self._places:
            self._layers[number].drop(self.eviction)
