"""Every operation of one pass of a transformer, counted from its sizes alone.

Axes: batch, token, source (what cross-attention looks at), head, query, key, width (d_model), d_k,
hidden (d_ff), vocabulary. Counted are the operations of matrix products, scaling and softmax; norms,
activations, sums and look-ups grow with the tokens only and are left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Literal

from model.config import GATED, Stack, TransformerConfig
from model.worked.arithmetic import sizes

Part = Literal["embedding", "projections", "pairs", "feed-forward", "norms and sums", "output"]


@dataclass(frozen=True)
class Operation:
    """One operation of a pass, and what it leaves. It happens `times` times, once a layer."""

    place: str  # decoder.embedding, decoder.self, decoder.cross, decoder.feed_forward, …
    name: str
    formula: str  # plain text
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    part: Part
    numbers: int  # new after one time; 0 where the same numbers are only put in another order
    times: int = 1
    flops: int = 0  # one time; a product and its sum count as two
    is_product: bool = True  # whether its operations are those of matrix products

    @property
    def key(self) -> tuple[str, str]:
        return self.place, self.name


@dataclass(frozen=True)
class Lengths:
    """Sequences of one pass: how many, and their tokens. Raises ValueError below 1."""

    batch: int
    tokens: int  # of the text
    target: int = 0  # of the decoder's input in an encoder–decoder; 0: as many as the text

    def __post_init__(self) -> None:
        if self.batch < 1 or self.tokens < 1 or self.target < 0:
            raise ValueError(f"{self.batch} sequences of {self.tokens} tokens cannot be read.")

    def of(self, stack: Stack, source: Stack) -> int:
        return self.tokens if stack == source else self.target or self.tokens


def operations(config: TransformerConfig, lengths: Lengths) -> tuple[Operation, ...]:
    """Every operation of a pass in order; those of a layer stand there once, with `times`."""
    found: list[Operation] = []
    layers: dict[Stack, int] = {"encoder": config.encoder_layers, "decoder": config.decoder_layers}
    for stack, times in layers.items():
        if times:
            found += _Stack(config, stack, times, lengths).operations()
    return tuple(found)


@dataclass(frozen=True)
class _Stack:
    config: TransformerConfig
    stack: Stack
    times: int
    lengths: Lengths

    def operations(self) -> Iterator[Operation]:
        yield from self._embedding()
        for kind in ("self", "cross"):
            if kind == "self" or self._crosses:
                yield from self._around(kind, self._attention(kind))
        if self.config.hidden:
            yield from self._around("feed_forward", self._feed_forward())
        if self.config.norm_place == "pre":
            yield self._of_width("final", "Final norm", "norm of each token", "norms and sums")
        if self.stack == "decoder":
            yield self._logits()

    @property
    def _tokens(self) -> int:
        return self.lengths.of(self.stack, self.config.source)

    @property
    def _crosses(self) -> bool:
        return self.stack == "decoder" and self.config.shape == "encoder-decoder"

    def _of_width(self, place: str, name: str, formula: str, part: Part, times: int = 1,
                  flops: int = 0) -> Operation:  # fmt: skip
        shape = (self.lengths.batch, self._tokens, self.config.width)
        axes = ("batch", "token", "width")
        return Operation(
            f"{self.stack}.{place}", name, formula, axes, shape, part, prod(shape), times, flops
        )

    def _embedding(self) -> Iterator[Operation]:
        batch, tokens = self.lengths.batch, self._tokens
        yield Operation(f"{self.stack}.embedding", "Token ids", "text to ids", ("batch", "token"),
                        (batch, tokens), "embedding", 0)  # fmt: skip
        yield self._of_width("embedding", "Token vectors", "row of the table", "embedding")
        if self.config.positions in ("learned", "sinusoidal") or self.config.segments:
            added = "E + P + segment" if self.config.segments else "E + P"
            yield self._of_width("embedding", "Plus positions", added, "embedding")
        if self.config.embedding_norm:
            yield self._of_width("embedding", "Norm", "norm of each token", "norms and sums")

    def _around(self, place: str, inner: Iterator[Operation]) -> Iterator[Operation]:
        """A sub-layer with its norm and its shortcut."""
        norm = self._of_width(
            place, "Norm", "norm of each token", "norms and sums", times=self.times
        )
        if self.config.norm_place == "pre":
            yield norm
        yield from inner
        yield self._of_width(place, "Plus the stream", "x + f(x)", "norms and sums", self.times)
        if self.config.norm_place == "post":
            yield norm

    def _attention(self, kind: str) -> Iterator[Operation]:
        """The walk of multi-head attention, with its costs."""
        batch, width, heads = self.lengths.batch, self.config.width, self.config.heads
        keys = self.lengths.tokens if kind == "cross" else self._tokens
        size = (batch, self._tokens, width, heads, keys)
        costs = {cost.name: cost for cost in sizes.attention_costs(*size)}
        for stage in sizes.shape_walk(*size)[1:]:  # the first is the input, which is there
            formula, part = _WALK[stage.name]
            yield Operation(
                f"{self.stack}.{kind}",
                stage.name,
                formula,
                stage.axes,
                stage.shape,
                part,
                costs[stage.name].numbers if stage.name in costs else 0,
                self.times,
                costs[stage.name].flops if stage.name in costs else 0,
                is_product=stage.name != "Weights",
            )
            if stage.name == "Scores":
                yield Operation(f"{self.stack}.{kind}", "Scaled", "scores / √dₖ, masked", stage.axes,
                                stage.shape, part, costs["Scaled"].numbers, self.times,
                                costs["Scaled"].flops, is_product=False)  # fmt: skip

    def _feed_forward(self) -> Iterator[Operation]:
        batch, width, hidden = self.lengths.batch, self.config.width, self.config.hidden
        axes, shape = ("batch", "token", "hidden"), (batch, self._tokens, hidden)
        flops = 2 * prod(shape) * width
        maps = 2 if self.config.activation in GATED else 1
        place = f"{self.stack}.feed_forward"
        yield Operation(place, "Hidden layer", "x·W₁ + b₁" if maps == 1 else "x·W₁, x·W_gate", axes,
                        shape, "feed-forward", maps * prod(shape), self.times, maps * flops)  # fmt: skip
        yield Operation(place, "Activation", _ACTIVATIONS[self.config.activation], axes, shape,
                        "feed-forward", prod(shape), self.times)  # fmt: skip
        yield self._of_width(
            "feed_forward", "Back to the width", "h·W₂ + b₂", "feed-forward", self.times, flops
        )

    def _logits(self) -> Operation:
        shape = (self.lengths.batch, self._tokens, self.config.vocabulary)
        return Operation("decoder.output", "Logits", "x·W_out", ("batch", "token", "vocabulary"),
                         shape, "output", prod(shape), flops=2 * prod(shape) * self.config.width)  # fmt: skip


_WALK: dict[str, tuple[str, Part]] = {
    "Q, K and V": ("x·W_Q, x·W_K, x·W_V", "projections"),
    "Cut into heads": ("width = heads · dₖ", "projections"),
    "Heads first": ("token and head swapped", "projections"),
    "Scores": ("Q·Kᵀ", "pairs"),
    "Weights": ("softmax of each row", "pairs"),
    "Context": ("weights · V", "pairs"),
    "Tokens first again": ("head and token swapped", "projections"),
    "Heads side by side": ("heads · dₖ = width", "projections"),
    "After W_O": ("context · W_O", "projections"),
}
_ACTIVATIONS = {
    "relu": "max(0, h)",
    "gelu": "GELU(h)",
    "gelu_tanh": "GELU(h), by tanh",
    "silu": "SiLU(h)",
    "swiglu": "SiLU(gate) · h",
    "geglu": "GELU(gate) · h",
    "geglu_tanh": "GELU(gate), by tanh, · h",
}
