"""The three shapes of transformer as one family: decoder-only, encoder-only, encoder–decoder.

Axes: B batch, T tokens, S source tokens, C width of the model, V vocabulary.
"""

from collections.abc import Sequence
from functools import cached_property
from types import MappingProxyType

import torch
from torch import Tensor, nn

from model.nn.attention import MultiHeadAttention
from model.nn.biases import BucketBias, position_bias
from model.nn.config import Reasons, Stack, TransformerConfig
from model.nn.key_value_cache import KEEPS_ALL, Eviction, KeyValueCache
from model.nn.layers import Block, Embedding, FeedForward, Norm
from model.nn.masks import causal_mask, padding_mask
from model.nn.places import Place
from model.nn.recorder import current
from model.system.memory import make_room


class Layers(nn.Module):
    """One stack of blocks, with the final norm that pre-norm stacks need."""

    def __init__(self, config: TransformerConfig, stack: Stack, layers: int) -> None:
        super().__init__()
        self.stack = stack
        self.blocks = nn.ModuleList(Block(config, stack, layer) for layer in range(layers))
        self.position_bias = position_bias(config, stack)
        final = Place(stack, None, "final")
        self.final_norm = None if config.norms_sum else Norm(config, final.norm)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        **masks_and_angles: Tensor | None,
    ) -> Tensor:
        """x through all blocks and the final norm, (B, T, C).

        Args:
            x: (B, T, C), of the new tokens where the recorder has a cache.
            memory: (B, S, C): the encoder's output; None: there is no source.
            masks_and_angles: of `Block.forward`; the same for each block.
        """
        current().stream(self.stack, x)
        own = self.position_bias
        cache = current().cache if self.stack == "decoder" else None
        first = 0 if cache is None else cache.read
        bias = None if own is None else own(first + x.shape[1], x.device)[:, first:]
        for layer, block in enumerate(self.blocks):
            x = current().entering(Place(self.stack, layer, "self").name, self.stack, x)
            x = block(x, memory, bias=bias, **masks_and_angles)
        return self.normed(x)

    def normed(self, x: Tensor) -> Tensor:
        return x if self.final_norm is None else self.final_norm(x)


class Transformer(nn.Module):
    """A transformer of any of the three shapes.

    `module(ids)`: a decoder gives logits (B, T, V), an encoder its states (B, T, C).
    `module(source, target)`: an encoder–decoder gives logits (B, T, V) for the target's positions.
    """

    unproven: Reasons = MappingProxyType({})  # tests prove every part
    unused: tuple[str, ...] = ()
    rereads = False
    rows_may_grow = True
    logit_factor = 1.0

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        if config.norms_output or config.experts:
            raise ValueError("Our own layers have one norm for each sub-layer, and no experts.")
        self.config = config
        self.embedding = Embedding(config)
        encoder, decoder = config.encoder_layers, config.decoder_layers
        self.encoder = Layers(config, "encoder", encoder) if encoder else None
        self.decoder = Layers(config, "decoder", decoder) if decoder else None
        untied = decoder and not config.tied
        biased = config.logits_bias
        self.output = nn.Linear(config.d_model, config.d_vocab, bias=biased) if untied else None

    def forward(
        self, ids: Tensor, target: Tensor | None = None, *, padding: Tensor | None = None
    ) -> Tensor:
        """Logits (B, T, V) of a decoder, states (B, S, C) of an encoder.

        Args:
            ids: (B, S). With a cache in the recorder, a decoder's new ones only.
            target: (B, T), which an encoder–decoder's decoder reads; with a cache the new ones only.
            padding: (B, S) bool, True = real token; None: no text of the batch is padded.

        Raises ValueError for an encoder–decoder without a target.
        """
        if self.config.shape == "encoder-decoder":
            if target is None:
                raise ValueError("An encoder–decoder needs the target's tokens.")
            return self.decode(target, self._memory(ids, padding), padding)
        if self.config.shape == "encoder":
            return self.encode(ids, padding)
        return self.decode(ids, None, padding)

    def encode(self, ids: Tensor, padding: Tensor | None = None) -> Tensor:
        """ids (B, S) to the encoder's output (B, S, C)."""
        if self.encoder is None:
            raise ValueError("This model has no encoder.")
        mask = None if padding is None else padding_mask(padding)
        return self.encoder(self.embedding(ids, "encoder"), mask=mask, angles=self._angles(ids))

    def decode(self, ids: Tensor, memory: Tensor | None, padding: Tensor | None = None) -> Tensor:
        """Logits (B, T, V), or the final states (B, T, C) where the recorder defers the logits.

        Args:
            ids: (B, T).
            memory: (B, S, C): the encoder's output; None: there is no source.
            padding: True = real token: (B, S) of the source, (B, T) of the ids where there is none; None:
                nothing is padded.

        Raises ValueError for an encoder.
        """
        if self.decoder is None:
            raise ValueError("This model has no decoder.")
        mask = memory_mask = None
        if padding is not None and memory is not None:
            memory_mask = padding_mask(padding)
        elif padding is not None:
            mask = padding_mask(padding) & causal_mask(ids.shape[-1], device=ids.device)
        cache = current().cache
        first = 0 if cache is None else cache.read
        x = self.decoder(
            self.embedding(ids, "decoder", first),
            memory,
            mask=mask,
            memory_mask=memory_mask,
            angles=self._angles(ids, first),
        )
        if cache is not None:
            cache.advance(ids.shape[-1])
        if current().deferred and self.output_matrix is not None:
            return x
        if current().keeps:
            make_room(ids.numel() * self.config.d_vocab)
        return self.logits(x)

    def logits(self, normed: Tensor) -> Tensor:
        """(…, C) after the final norm to (…, V)."""
        logits = normed @ self.logits_table.T
        return logits if self.logits_bias is None else logits + self.logits_bias

    @property
    def logits_table(self) -> Tensor:
        """(V, C): turns normed states into logits; the token table where the two are tied."""
        return self.embedding.tokens.weight if self.output is None else self.output.weight

    @property
    def logits_bias(self) -> Tensor | None:
        """(V): what is added to the logits; None for most models."""
        return None if self.output is None else self.output.bias

    @property
    def output_matrix(self) -> Tensor | None:
        """The table of the logits, where they are the normed states times it and nothing else."""
        return self.logits_table if self.logits_bias is None else None

    def unembed(self, stream: Tensor) -> Tensor:
        """A state of the stream (…, C) as logits (…, V): final norm, then the output matrix.

        Source: the "logit lens" (nostalgebraist 2020). Raises ValueError for an encoder without head.
        """
        if self.decoder is None:
            raise ValueError("An encoder without a head predicts no next token.")
        return self.logits(self.decoder.normed(stream))

    def attentions(self) -> Sequence[MultiHeadAttention]:
        """Every attention sub-layer, in order of execution."""
        return self._attentions

    @cached_property
    def _attentions(self) -> tuple[MultiHeadAttention, ...]:
        return tuple(module for module in self.modules() if isinstance(module, MultiHeadAttention))

    def bias_table(self, place: Place) -> nn.Embedding | None:
        """The numbers that are added to a sub-layer's scores, by bucket and head; None without buckets."""
        stack: Layers | None = getattr(self, place.stack)
        own = None if stack is None or place.kind == "cross" else stack.position_bias
        return own.table if isinstance(own, BucketBias) else None

    def bias_terms(self, record: object) -> dict[str, Tensor]:
        """The terms of a sub-layer's biases: here there is one at most, so none is named."""
        return {}

    def named_weights(self) -> dict[str, Tensor]:
        """Every weight by its name."""
        return self.state_dict()

    def extra_parameters(self) -> dict[str, int]:
        """Parameters that do not follow from the config: none."""
        return {}

    def w_out(self, name: str) -> nn.Linear:
        """The second map of the feed-forward of this name. Raises ValueError if there is none."""
        for module in self.modules():
            if isinstance(module, FeedForward) and module.name == name:
                return module.w_out
        raise ValueError(f"There is no feed-forward {name!r}.")

    def greedy(
        self,
        ids: Tensor,
        *,
        start: int | None,
        end: int | None,
        limit: int,
        first: int | None = None,
    ) -> list[int]:
        """The most probable next token, again and again: the ids that follow the text in a decoder, the
        target ids of an encoder–decoder (without `start`). Stops at the model's context at the latest.

        Args:
            ids: (1, T).
            start: what the decoder of two stacks reads first; a decoder alone reads none.
            end: the id after which it stops; None: nothing ends it.
            limit: tokens at most, `first` among them.
            first: an id that is written before all others; None: the most probable one.
        """
        with torch.inference_mode():
            memory = self.encode(ids) if self.encoder is not None else None
            chosen: list[int] = [] if first is None else [first]
            prefix = ids[0].tolist() if memory is None else [start]
            while len(chosen) < limit and len(prefix) + len(chosen) <= self.config.n_ctx:
                fed = torch.tensor([prefix + chosen], device=ids.device)
                chosen.append(int(self.decode(fed, memory)[0, -1].argmax()))
                if chosen[-1] == end:
                    break
            return chosen

    def new_cache(self, eviction: Eviction = KEEPS_ALL) -> KeyValueCache:
        """An empty cache for a text that the decoder writes."""
        return KeyValueCache(eviction)

    def _memory(self, ids: Tensor, padding: Tensor | None) -> Tensor:
        """(B, S, C): what the encoder makes of its text, once for each cache."""
        cache = current().cache
        if cache is None:
            return self.encode(ids, padding)
        if cache.memory is None:
            cache.memory = self.encode(ids, padding)
        return cache.memory

    def _angles(self, ids: Tensor, first: int = 0) -> Tensor | None:
        angles = self.embedding.angles(first + ids.shape[-1], ids.device)
        return angles if angles is None else angles[first:]
