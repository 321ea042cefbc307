"""Every operation of one pass of a transformer, counted from its sizes alone.

Axes: batch, token, source (what cross-attention looks at), head, query, key, width (d_model), d_k,
hidden (d_ff), vocabulary. Operations are those of matrix products, scaling and softmax. Norms,
activations, sums and look-ups grow only with the tokens and are left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Literal

from model.arithmetic.sizes import SOFTMAX
from model.nn.config import Stack, TransformerConfig

Part = Literal["embedding", "projections", "pairs", "feed-forward", "norms and sums", "output"]


@dataclass(frozen=True)
class Operation:
    """One operation of a pass and its result. It happens `times` times, once a layer."""

    place: str  # decoder.embedding, decoder.self, decoder.cross, decoder.feed_forward, …
    name: str
    formula: str  # plain text
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    part: Part
    numbers: int  # new ones, each time; 0 where they are only put in another order
    times: int = 1
    flops: int = 0  # each time; a product and its sum count as two
    is_product: bool = True  # whether it is a matrix product

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
    """Every operation of a pass in order; those of a layer once, with `times`."""
    layers: dict[Stack, int] = {"encoder": config.encoder_layers, "decoder": config.decoder_layers}
    stacks = (_Stack(config, stack, times, lengths) for stack, times in layers.items() if times)
    return tuple(operation for stack in stacks for operation in stack.operations())


@dataclass(frozen=True)
class _Stack:
    config: TransformerConfig
    stack: Stack
    times: int
    lengths: Lengths

    def operations(self) -> Iterator[Operation]:
        crosses = self.stack == "decoder" and self.config.shape == "encoder-decoder"
        yield from self._embedding()
        for kind in ("self", "cross") if crosses else ("self",):
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
        added = " + P" * self.config.adds_positions + " + segment" * bool(self.config.segments)
        if added:
            yield self._of_width("embedding", "Plus positions", f"E{added}", "embedding")
        if self.config.embedding_norm:
            yield self._of_width("embedding", "Norm", "norm of each token", "norms and sums")

    def _around(self, place: str, inner: Iterator[Operation]) -> Iterator[Operation]:
        """A sub-layer with its norm and its shortcut."""
        norm = self._of_width(place, "Norm", "norm of each token", "norms and sums", self.times)
        if self.config.norm_place == "pre":
            yield norm
        yield from inner
        yield self._of_width(place, "Plus the stream", "x + f(x)", "norms and sums", self.times)
        if self.config.norm_place == "post":
            yield norm

    def _attention(self, kind: str) -> Iterator[Operation]:
        """Multi-head attention step by step. Keys and values may have fewer heads than queries; in
        cross-attention they come from the source."""
        config, batch, tokens = self.config, self.lengths.batch, self._tokens
        heads, shared, d_k = config.heads, config.key_head_count, config.head_width
        keys = self.lengths.tokens if kind == "cross" else tokens
        width, read, kept = config.width, heads * d_k, shared * d_k  # of all heads side by side
        asked, offered = batch * tokens, 2 * batch * keys  # a key and a value a token looked at
        table, output = batch * heads * tokens * keys, asked * read
        pairs = ("batch", "head", "query", "key"), (batch, heads, tokens, keys)

        def step(name: str, formula: str, axes: tuple[str, ...], shape: tuple[int, ...],
                 numbers: int = 0, flops: int = 0) -> Operation:  # fmt: skip
            part: Part = "pairs" if name in _PAIRS else "projections"
            return Operation(f"{self.stack}.{kind}", name, formula, axes, shape, part, numbers,
                             self.times, flops, is_product=name in _PRODUCTS)  # fmt: skip

        split, by_head = ("batch", "token", "head", "d_k"), ("batch", "head", "token", "d_k")
        flat, cut = ("batch", "token", "head · d_k"), "heads · dₖ, one axis cut into two"
        bias = " + b" if config.qkv_bias else ""
        yield step("Q", f"x·W_Q{bias}", flat, (batch, tokens, read), output, 2 * width * output)
        yield step("K and V", f"x·W_K{bias}, x·W_V{bias}", flat, (batch, keys, kept), offered * kept,
                   2 * width * offered * kept)  # fmt: skip
        yield step("Q cut into heads", cut, split, (batch, tokens, heads, d_k))
        yield step("K and V cut into heads", cut, split, (batch, keys, shared, d_k))
        swapped = "token and head swapped"
        yield step("Q, heads first", swapped, by_head, (batch, heads, tokens, d_k))
        for name in ("K", "V"):
            yield step(f"{name}, heads first", swapped, by_head, (batch, shared, keys, d_k))
        product = 2 * table * d_k
        group = f", {heads // shared} heads to a key" if config.groups_keys else ""
        yield step("Scores", f"Q·Kᵀ{group}", *pairs, table, product)
        masked = ", masked" if kind == "self" and self.stack == "decoder" else ""
        yield step("Scaled", f"scores / √dₖ{masked}", *pairs, table, table)
        yield step("Weights", "softmax of each row", *pairs, table, SOFTMAX * table)
        yield step("Context", "weights · V", by_head, (batch, heads, tokens, d_k), output, product)
        yield step("Tokens first again", swapped, split, (batch, tokens, heads, d_k))
        yield step("Heads side by side", "heads · dₖ, one axis", flat, (batch, tokens, read))
        mixed = "context · W_O" + (" + b_O" if config.output_bias else "")
        yield step("After W_O", mixed, ("batch", "token", "width"), (batch, tokens, width),
                   asked * width, 2 * width * output)  # fmt: skip

    def _feed_forward(self) -> Iterator[Operation]:
        config, batch = self.config, self.lengths.batch
        axes, shape = ("batch", "token", "hidden"), (batch, self._tokens, config.hidden)
        flops = 2 * prod(shape) * config.width
        inner, outer = (" + b₁", " + b₂") if config.hidden_bias else ("", "")
        gate = f", x·W_g{inner and ' + b_g'}" if config.is_gated else ""
        maps = 2 if config.is_gated else 1
        place = f"{self.stack}.feed_forward"
        yield Operation(place, "Hidden layer", f"x·W₁{inner}{gate}", axes, shape, "feed-forward",
                        maps * prod(shape), self.times, maps * flops)  # fmt: skip
        yield Operation(place, "Activation", _ACTIVATIONS[config.activation], axes, shape,
                        "feed-forward", prod(shape), self.times)  # fmt: skip
        yield self._of_width(
            "feed_forward", "Back to the width", f"h·W₂{outer}", "feed-forward", self.times, flops
        )

    def _logits(self) -> Operation:
        shape = (self.lengths.batch, self._tokens, self.config.vocabulary)
        return Operation("decoder.output", "Logits", "x·W_out", ("batch", "token", "vocabulary"),
                         shape, "output", prod(shape), flops=2 * prod(shape) * self.config.width)  # fmt: skip


_PAIRS = ("Scores", "Scaled", "Weights", "Context")
_PRODUCTS = ("Q", "K and V", "Scores", "Context", "After W_O")
_ACTIVATIONS = {
    "relu": "max(0, h)",
    "gelu": "GELU(h)",
    "gelu_tanh": "GELU(h), by tanh",
    "silu": "SiLU(h)",
    "swiglu": "SiLU(gate) · h",
    "geglu": "GELU(gate) · h",
    "geglu_tanh": "GELU(gate), by tanh, · h",
}
