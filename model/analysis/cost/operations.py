"""Every operation of one pass of a transformer, counted from its sizes alone.

Axes: batch, token, source (what cross-attention looks at), head, query, key, width (d_model), d_k, d_v,
hidden (d_mlp), expert, read (the experts that read a token), vocabulary. Operations are those of matrix
products, scaling and softmax. Norms, activations, sums and look-ups grow only with the tokens and are left
out.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Literal

from model.analysis.stream.stream import sub_layers
from model.arithmetic.sizes import SOFTMAX
from model.nn.activations import ACTIVATION_LAWS
from model.nn.config import Stack, TransformerConfig
from model.nn.places import Kind, Place
from model.nn.stages import SCORE_STAGES, SINKS
from model.system.remote import asked
from model.system.words import Words
from model.trace.records import Attention
from model.trace.trace import Trace

say = Words("analysis.cost_operations")

OUTPUT = Place("decoder", None, "output").name
CostPart = Literal["embedding", "projections", "pairs", "feed-forward", "norms and sums", "output"]


@dataclass(frozen=True)
class Operation:
    """One operation of a pass and its result. It happens `times` times, once a layer."""

    place: str  # decoder.embedding, decoder.self, decoder.cross, decoder.feed_forward, …
    name: str
    formula: str  # plain text
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    part: CostPart
    numbers: int  # new ones, each time; 0 where they are only put in another order
    times: int = 1
    flops: int = 0  # each time; a product and its sum count as two

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


_WIDE, _FLAT = ("batch", "token", "d_model"), ("batch", "token", "head · d_k")
_SPLIT, _BY_HEAD = ("batch", "token", "head", "d_k"), ("batch", "head", "token", "d_k")
_PAIRS, _HIDDEN = ("batch", "head", "query", "key"), ("batch", "token", "d_mlp")
_LATENT = ("batch", "token", "latent")
_OF_VALUES = (  # as _BY_HEAD, _SPLIT and _FLAT
    ("batch", "head", "token", "d_v"),
    ("batch", "token", "head", "d_v"),
    ("batch", "token", "head · d_v"),
)
_NORM, _SWAPPED = say("norm_token"), say("token_head_swapped")
_CUT = say("heads_axis_cut_into")


class _Stack:
    """One stack: its operations, and the size of each axis."""

    def __init__(
        self, config: TransformerConfig, stack: Stack, layers: int, lengths: Lengths
    ) -> None:
        self.config, self.stack, self.layers, self.lengths = config, stack, layers, lengths
        tokens = lengths.of(stack, config.source)
        self.sizes = {
            "batch": lengths.batch,
            "token": tokens,
            "query": tokens,
            "head": config.heads,
            "d_k": config.head_width,
            "d_v": config.value_width,
            "head · d_k": config.heads * config.head_width,
            "head · d_v": config.heads * config.value_width,
            "d_model": config.d_model,
            "d_mlp": config.d_mlp,
            "d_vocab": config.d_vocab,
        }

    def operations(self) -> Iterator[Operation]:
        config, made = self.config, self._made
        yield from self._embedding()
        crosses = self.stack == "decoder" and config.shape == "encoder-decoder"
        kinds: tuple[Kind, ...] = ("self", "cross") if crosses else ("self",)
        for kind in kinds:
            yield from self._around(kind, self._attention(kind))
        if config.d_mlp or config.experts:
            yield from self._around("feed_forward", self._feeds())
        if not config.norms_sum:
            yield made("final", "Final norm", _NORM, _WIDE, "norms and sums")
        if self.stack == "decoder":
            axes = ("batch", "token", "d_vocab")
            yield made("output", "Logits", "x·W_out", axes, "output", each=2 * config.d_model)

    def _made(
        self,
        place: Kind,
        name: str,
        formula: str,
        axes: tuple[str, ...],
        part: CostPart,
        *,
        times: int = 1,
        new: int = 1,
        each: int = 0,
        sizes: dict[str, int] | None = None,
    ) -> Operation:
        """new: new numbers for each cell of the shape. each: operations for each new number. sizes: of
        axes that have another size here."""
        shape = tuple((self.sizes | (sizes or {}))[axis] for axis in axes)
        numbers = new * prod(shape)
        return Operation(
            Place(self.stack, None, place).name,
            name,
            formula,
            axes,
            shape,
            part,
            numbers,
            times,
            each * numbers,
        )

    def _embedding(self) -> Iterator[Operation]:
        made = partial(self._made, "embedding")
        yield made("Token ids", "text to ids", ("batch", "token"), "embedding", new=0)
        yield made("Token vectors", say("row_table"), _WIDE, "embedding")
        added = " + P" * self.config.adds_positions + " + segment" * bool(self.config.segments)
        if added:
            yield made("Plus positions", f"E{added}", _WIDE, "embedding")
        if self.config.embedding_norm:
            yield made("Norm", _NORM, _WIDE, "norms and sums")

    def _around(self, place: Kind, inner: Iterator[Operation]) -> Iterator[Operation]:
        """A sub-layer with its norm and its shortcut."""
        made = partial(self._made, place, axes=_WIDE, part="norms and sums", times=self.layers)
        if self.config.norms_input:
            yield made("Norm", _NORM)
        yield from inner
        if self.config.norms_output:
            yield made(say("norm_output"), _NORM)
        yield made("Plus the stream", "x + f(x)")
        if self.config.norms_sum:
            yield made("Norm", _NORM)

    def _attention(self, kind: Kind) -> Iterator[Operation]:
        """Multi-head attention step by step. Keys and values may have fewer heads than queries; in
        cross-attention they come from the source."""
        config = self.config
        heads, shared, d_k = config.heads, config.key_head_count, config.head_width
        keys = self.lengths.tokens if kind == "cross" else self.sizes["token"]
        kept = {"token": keys, "head": shared, "head · d_k": shared * d_k}
        group = f", {heads // shared} heads to a key" if config.groups_keys else ""
        scaled = "scores / √dₖ" if config.scaled_scores else "scores, not divided"
        own = kind == "self"
        later = "".join(stage.in_operations(config, own=own) for stage in SCORE_STAGES)
        masked = ", masked" if kind == "self" and self.stack == "decoder" else ""
        sink = SINKS.in_operations(config, own=own)
        mixed = "context · W_O" + (" + b_O" if config.output_bias else "")
        flat = partial(self._made, kind, part="projections", times=self.layers)
        pairs = partial(self._made, kind, part="pairs", times=self.layers, sizes={"key": keys})
        yield from self._latents(flat) if config.key_latent else self._projections(flat, kept)
        yield pairs("Scores", f"Q·Kᵀ{group}", _PAIRS, each=2 * d_k)
        yield pairs("Scaled", f"{scaled}{later}{masked}", _PAIRS, each=1)
        yield pairs("Weights", say("softmax_row", sink=sink), _PAIRS, each=SOFTMAX)
        by_head, split, side = _OF_VALUES if config.value_size else (_BY_HEAD, _SPLIT, _FLAT)
        yield pairs("Context", "weights · V", by_head, each=2 * keys)
        yield flat("Tokens first again", _SWAPPED, split, new=0)
        axis = "heads · dᵥ" if config.value_size else "heads · dₖ"
        yield flat(say("heads_side_side"), f"{axis}, one axis", side, new=0)
        yield flat("After W_O", mixed, _WIDE, each=2 * heads * config.value_width)

    def _projections(
        self, flat: Callable[..., Operation], kept: dict[str, int]
    ) -> Iterator[Operation]:
        """kept: the sizes of keys and values."""
        bias, each = " + b" if self.config.qkv_bias else "", 2 * self.config.d_model
        yield flat("Q", f"x·W_Q{bias}", _FLAT, each=each)
        yield flat("K and V", f"x·W_K{bias}, x·W_V{bias}", _FLAT, new=2, each=each, sizes=kept)
        yield flat("Q cut into heads", _CUT, _SPLIT, new=0)
        yield flat(say("k_v_cut_into_heads"), _CUT, _SPLIT, new=0, sizes=kept)
        yield flat("Q, heads first", _SWAPPED, _BY_HEAD, new=0)
        for name in ("K", "V"):
            yield flat(f"{name}, heads first", _SWAPPED, _BY_HEAD, new=0, sizes=kept)

    def _latents(self, flat: Callable[..., Operation]) -> Iterator[Operation]:
        """Down to a latent vector and up to all heads (DeepSeek-V2, 2024, 2.1). Of the keys a part is made
        of the stream itself, for all heads at once: it alone is turned by positions."""
        config, each = self.config, 2 * self.config.d_model
        if latent := config.query_latent:
            inner = {"latent": latent}
            yield flat("Latent of Q", "x·W_DQ", _LATENT, each=each, sizes=inner)
            yield flat(say("norm_latent"), _NORM, _LATENT, sizes=inner)
        made = "c_Q·W_UQ" if latent else "x·W_Q"
        yield flat("Q", made, _FLAT, each=2 * (latent or config.d_model))
        kept = {"latent": config.key_latent, "turned": config.turned_key}
        yield flat("Latent of K and V", "x·W_DKV", _LATENT, each=each, sizes=kept)
        yield flat(say("norm_latent_2"), _NORM, _LATENT, sizes=kept)
        yield flat(
            "Turned part of K", "x·W_KR", ("batch", "token", "turned"), each=each, sizes=kept
        )
        still = config.head_width - config.turned_key
        for name, axis, wide in (("K", "d_k − turned", still), ("V", "d_v", config.value_width)):
            axes, formula = ("batch", "token", f"head · {axis}"), f"c·W_U{name}"
            sizes = {axes[-1]: config.heads * wide}
            yield flat(
                f"{name} of the latent", formula, axes, each=2 * config.key_latent, sizes=sizes
            )
        yield flat("Q, heads first", _SWAPPED, _BY_HEAD, new=0)
        yield flat("K, heads first", say("both_parts_token"), _BY_HEAD, new=0)
        yield flat("V, heads first", _SWAPPED, _OF_VALUES[0], new=0)

    def _experts(self) -> Iterator[Operation]:
        """A router, and for each token the few experts that it chooses (Shazeer et al. 2017); what every
        token meets beside them counts with them."""
        config, width = self.config, 2 * self.config.d_model
        bias = " + b" if config.router_bias else ""
        made = partial(
            self._made, "feed_forward", part="feed-forward", times=config.expert_layers,
            sizes={"expert": config.experts, "read": config.experts_read,
                   "d_expert": config.d_expert, "d_shared": config.d_shared},
        )  # fmt: skip
        yield made("Router", f"x·W_r{bias}", ("batch", "token", "expert"), each=width)
        one = ("batch", "token", "read", "d_expert")
        yield made(say("hidden_layer_experts"), "x·W₁, x·W_g of each", one, new=2, each=width)
        yield made(say("activation_experts"), "gate · h", one)
        back = ("batch", "token", "read", "d_model")
        yield made(say("back_width"), "h·W₂", back, each=2 * config.d_expert)
        if config.d_shared:
            shared = ("batch", "token", "d_shared")
            yield made(say("hidden_layer"), "x·W₁, x·W_g", shared, new=2, each=width)
            yield made("Activation for all", "gate · h", shared)
            yield made(say("back_width_2"), "h·W₂", _WIDE, each=2 * config.d_shared)
        yield made("Weighted sum", "Σ weight · expert", _WIDE)

    def _feeds(self) -> Iterator[Operation]:
        if self.config.d_mlp and self.config.feed_forward_layers:
            yield from self._feed_forward()
        if self.config.expert_layers:
            yield from self._experts()

    def _feed_forward(self) -> Iterator[Operation]:
        config, maps = self.config, 2 if self.config.is_gated else 1
        layers = config.feed_forward_layers if config.experts else self.layers
        inner, outer = (" + b₁", " + b₂") if config.hidden_bias else ("", "")
        gate = f", x·W_g{inner and ' + b_g'}" if config.is_gated else ""
        made = partial(self._made, "feed_forward", part="feed-forward", times=layers)
        yield made("Hidden layer", f"x·W₁{inner}{gate}", _HIDDEN, new=maps, each=2 * config.d_model)
        yield made("Activation", ACTIVATION_LAWS[config.activation].words, _HIDDEN)
        yield made(say("back_width_3"), f"h·W₂{outer}", _WIDE, each=2 * config.d_mlp)


Dimensions = tuple[int, ...]
Key = tuple[str, str]  # place and name of an operation


def lengths_of(trace: Trace) -> Lengths:
    """The lengths of what a pass read."""
    return Lengths(1, len(trace.tokens), len(trace.target_tokens))


@asked
def recorded_shapes(trace: Trace) -> dict[Key, Dimensions]:
    """Shape of each recorded array of the first layer by (place, name) of its operation, without the
    batch axis. Views of other arrays are not listed."""
    found: dict[Key, Dimensions] = {}
    for stack in trace.stacks:
        found |= _stream(trace, stack)
    for attention in trace.attention:
        if attention.layer == 0:
            found |= _attention(attention)
    for norm in trace.norms:
        place = Place.named(norm.name)
        if not place.layer:  # the first one, or outside of the layers
            after = say("norm_output") if norm.name == place.after else "Norm"
            name = "Final norm" if place.kind == "final" else after
            found[place.in_any_layer, name] = norm.output.shape
    for record in trace.feed_forward:
        place = Place.named(record.name)
        if place.layer == 0:
            found[place.in_any_layer, "Hidden layer"] = record.before.shape
            found[place.in_any_layer, "Activation"] = record.hidden.shape
    for experts in trace.experts[:1]:
        found[Place.named(experts.name).in_any_layer, "Router"] = experts.logits.shape
    if trace.prediction is not None:
        found[OUTPUT, "Logits"] = trace.prediction.shape
    return found


def compared(
    operations: tuple[Operation, ...], recorded: dict[Key, Dimensions]
) -> list[tuple[Operation, Dimensions | None, bool | None]]:
    """Each operation with its recorded shape, if any, and whether both agree for one sequence."""
    pairs = [(step, recorded.get(step.key)) for step in operations]
    return [
        (step, shape, None if shape is None else (1, *shape) == step.shape) for step, shape in pairs
    ]


def _stream(trace: Trace, stack: Stack) -> dict[Key, Dimensions]:
    embedding = Place(stack, None, "embedding").name
    found = {
        (embedding, "Token ids"): (len(trace.tokens_of(stack)),),
        (embedding, "Token vectors"): trace.summands[stack]["tokens"].shape,
        (embedding, "Plus positions"): trace.residual[stack][0].shape,
    }
    places = [Place.named(name) for name in sub_layers(trace, stack)]
    first = [place for place in places if place.layer == 0]
    for state, place in zip(trace.residual[stack][1:], first, strict=False):
        found[place.in_any_layer, "Plus the stream"] = state.shape
    return found


def _attention(attention: Attention) -> dict[Key, Dimensions]:
    place = attention.place.in_any_layer
    vectors = zip("QKV", attention.vectors, strict=True)
    maps = {"Scores": attention.scores, "Scaled": attention.masked, "Weights": attention.weights}
    return (
        {(place, f"{name}, heads first"): each.shape for name, each in vectors}
        | {(place, name): (attention.heads, *of(0).shape) for name, of in maps.items()}
        | {(place, "Context"): attention.output.shape}
    )
