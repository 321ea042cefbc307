"""Keys and values kept from the tokens read so far, so that a new token needs only its own pass.

A token keeps the position at which it was read, also after others before it were dropped. (StreamingLLM, Xiao
et al. 2023, numbers the kept tokens anew; here a model whose positions end at n_ctx still ends there.)
Axes: B batch, H heads of keys, T new tokens, S kept tokens, D width of a head, C width of the model.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Eviction:
    """Which tokens can still be read: the last `window`, the reader included, and the `first` of the text.
    The default drops nothing. Raises ValueError for numbers without a meaning."""

    window: int | None = None
    first: int = 0

    def __post_init__(self) -> None:
        if self.window is not None and self.window < 1:
            raise ValueError(f"A window of {self.window} tokens holds none; it must be 1 or more.")
        if self.first < 0:
            raise ValueError(f"{self.first} first tokens cannot be kept.")

    def readable(self, keys: Tensor, queries: Tensor | int) -> Tensor:
        """Whether a key can be read by a query: True where it is not dropped. Positions, which broadcast."""
        if self.window is None:
            return torch.ones_like(keys, dtype=torch.bool)
        return (keys < self.first) | (keys > queries - self.window)

    def mask(self, length: int) -> Tensor | None:
        """(query, key) of a text that is read at once, without the look-ahead mask; None where all is
        readable."""
        if self.window is None:
            return None
        where = torch.arange(length)
        return self.readable(where[None], where[:, None])


KEEPS_ALL = Eviction()


@dataclass(frozen=True, eq=False)
class Kept:
    """The keys and values of one sub-layer, (B, H, S, D), and the positions (S,) of their tokens."""

    key: Tensor
    value: Tensor
    positions: Tensor
    own: Eviction = KEEPS_ALL  # by the model's own sliding window

    @property
    def nbytes(self) -> int:
        """Bytes of keys and values."""
        return self.key.nbytes + self.value.nbytes

    def only(self, chosen: Tensor) -> "Kept":
        """The chosen tokens, (S,) bool."""
        if bool(chosen.all()):
            return self
        where = chosen.to(self.key.device)
        key, value = self.key[..., where, :], self.value[..., where, :]
        return Kept(key, value, self.positions[chosen], self.own)

    def left(self, eviction: Eviction, query: int) -> "Kept":
        """What the token at a position can read, by both rules."""
        where = self.positions
        return self.only(eviction.readable(where, query) & self.own.readable(where, query))


class KeyValueCache:
    """What the decoder of one text keeps. The recorder of a pass carries it, and the pass adds its tokens."""

    def __init__(self, eviction: Eviction = KEEPS_ALL) -> None:
        self.eviction = eviction
        self.read = 0  # tokens so far, dropped ones included
        self.new = 0  # of them in the last pass
        self.memory: Tensor | None = None  # (B, S, C): what the encoder of the text ended with
        self._kept: dict[str, Kept] = {}

    @property
    def kept(self) -> dict[str, Kept]:
        """By attention sub-layer of the decoder; the source's in cross-attention."""
        return dict(self._kept)

    def positions(self, name: str) -> Tensor:
        """(S,): where the keys of a sub-layer stand in the text, the new ones among them."""
        return self._kept[name].positions

    def with_new(
        self, name: str, key: Tensor, value: Tensor, window: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """The kept keys and values of a sub-layer, and after them the new ones.

        Args:
            name: of the sub-layer.
            key, value: (B, H, T, D), of the new tokens.
            window: tokens of the layer's own sliding attention; None: it has none.

        Raises ValueError for several new tokens after a drop.
        """
        new = torch.arange(self.read, self.read + key.shape[-2])
        before = self._kept.get(name)
        if before is not None:
            if len(before.positions) < self.read and len(new) > 1:
                raise ValueError("A cache that drops keys reads one new token at a time.")
            key = torch.cat([before.key, key], -2)
            value = torch.cat([before.value, value], -2)
            new = torch.cat([before.positions, new])
        self._kept[name] = Kept(key, value, new, Eviction(window))
        return key, value

    def of_source(
        self, name: str, made: Callable[[], tuple[Tensor, Tensor]]
    ) -> tuple[Tensor, Tensor]:
        """Keys and values of the source in a cross-attention, made once: nothing is added to them."""
        if name not in self._kept:
            key, value = made()
            self._kept[name] = Kept(key, value, torch.arange(key.shape[-2]))
        kept = self._kept[name]
        return kept.key, kept.value

    def advance(self, tokens: int) -> None:
        """Called after a pass over so many new tokens: drops what the next one cannot read."""
        self.read, self.new = self.read + tokens, tokens
        for name, kept in self._kept.items():
            if not name.endswith(".cross"):
                self._kept[name] = kept.left(self.eviction, self.read)

    def narrowed(self, mask: Tensor | None, query: Tensor, key: Tensor) -> Tensor | None:
        """The mask of a pass, (…, query, key), without what its queries can read no more. Tokens read one at
        a time need none, for it is dropped.

        Args:
            mask: True = may look; None: the look-ahead mask.
            query, key: of which the lengths and the device are read.

        Raises ValueError for many tokens after a drop.
        """
        queries, keys = query.shape[-2], key.shape[-2]
        evicts = self.eviction.mask(queries)
        if evicts is None or queries == 1:
            return mask
        if keys != queries:
            raise ValueError("A cache that drops keys reads one new token at a time.")
        evicts = evicts.to(query.device)
        own = torch.ones_like(evicts).tril() if mask is None else mask
        return own & evicts
