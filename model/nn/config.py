"""The sizes and choices that make one transformer."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args, get_origin, get_type_hints

from model.nn.activations import GATED, Activation
from model.nn.norms import NORM_PLACES, NORMS, NormKind, NormLaw, NormPlace
from model.nn.positions import POSITIONS, Learned, PositionKind, PositionLaw, RotaryPairs

Shape = Literal["decoder", "encoder", "encoder-decoder"]
Stack = Literal["encoder", "decoder"]
ProvenPart = Literal[  # of a model, proven by itself when the model is loaded
    "stream", "embedding", "norms", "feed_forward", "output", "logits", "unembedding",
    "logit_parts", "positions", "sizes",
]  # fmt: skip
Reasons = Mapping[ProvenPart, str]  # why parts are not proven, as clauses: "its layers …"


@dataclass(frozen=True)
class Projection:
    """How a sub-layer projects to queries and keys; values have the bias alone."""

    bias: bool = True
    normed: bool = False  # a norm of each head's vector follows (Qwen3)
    turned: bool = False  # then rotary positions turn it


AS_IN_GPT2 = Projection()
_AT_LEAST_ONE = ("d_vocab", "n_ctx", "d_model", "heads")  # the other sizes may be 0


@dataclass(frozen=True)
class TransformerConfig:
    """Widths in numbers of values, lengths in tokens. `hidden=0`: without feed-forward layers.

    Raises ValueError for sizes that do not fit together.
    """

    shape: Shape
    d_vocab: int
    n_ctx: int
    d_model: int
    heads: int
    encoder_layers: int = 0
    decoder_layers: int = 0
    d_mlp: int = 0  # of the feed-forward; 0: none
    norm: NormKind = "layer"
    norm_place: NormPlace = "pre"
    activation: Activation = "gelu"
    positions: PositionKind = "learned"
    segments: int = 0  # sentence-pair embeddings (BERT)
    separator: int = (
        0  # the token after which the second sentence of a pair begins; 0: it reads no pairs
    )
    embedding_norm: bool = False  # a norm right after the embeddings (BERT)
    scaled_embedding: bool = False  # token vectors times sqrt(d_model) (Vaswani et al. 2017, 3.4)
    qkv_bias: bool = True
    output_bias: bool = True  # of W_O
    tied: bool = True  # the output matrix is the token table
    logits_bias: bool = False  # added to the logits
    epsilon: float = 1e-5
    rotary_base: float = 10_000.0
    rotary_pairs: RotaryPairs = "halves"  # i and i + R/2 turn together, or 2i and 2i + 1
    rotary_width: int = 0  # dimensions of a head that turn; 0: all
    dropout: float = 0.0  # in training, on embeddings and sub-layer outputs
    attention_dropout: float = 0.0  # in training, on attention weights
    key_heads: int = 0  # heads of keys and values, shared by equal groups of queries; 0: all
    head_size: int = 0  # d_k; 0: d_model / heads
    hidden_bias: bool = True  # of the feed-forward's maps
    parallel: bool = False  # attention and feed-forward read the same state (GPT-NeoX)
    norm_bias: bool = True  # of layer norms: β
    query_key_norm: int = 0  # γ and β of the norms of a layer's queries and keys (Qwen3)
    shared_norm: bool = False  # one norm a layer, read by attention and feed-forward (Phi)
    buckets: int = 0  # of distances, where positions are "buckets" (T5)
    farthest: int = 0  # the last of them takes all distances from here on
    scaled_scores: bool = True  # False: scores are not divided by sqrt(d_k) (T5)
    cap: float = 0.0  # scores are kept between -cap and cap by a tanh (Gemma 2); 0: not capped
    sinks: bool = False  # a learned logit of each head joins every row's softmax (gpt-oss)
    window: int = 0  # keys that a query reads at most, itself included; 0: all (Mistral)
    full_every: int = 0  # every so many layers one has no window (Gemma 3); 0: none
    first_norm: bool = (
        True  # the first layer norms what it reads; in ModernBERT a norm stands before it
    )
    experts: int = 0  # of each feed-forward, some of which read a token (Mixtral); 0: none
    experts_read: int = 0  # how many of them read a token; 0: not known
    d_expert: int = 0  # neurons of an expert, which has a gate
    d_shared: int = 0  # neurons beside the experts that every token meets (DeepSeek-V3)
    dense_layers: int = 0  # the first layers, whose feed-forward has no experts
    expert_bias: bool = False  # of the maps of experts
    router_bias: bool = False
    query_latent: int = (
        0  # a query is made of so many numbers (DeepSeek-V2); 0: of the stream itself
    )
    key_latent: int = 0  # keys and values are made of so many numbers; 0: of the stream itself
    turned_key: int = 0  # beside them: turned dimensions of a key, which all heads share
    value_size: int = 0  # d_v of those; 0: d_k

    def __post_init__(self) -> None:
        for field, kind in _KINDS.items():
            value = getattr(self, field)
            if get_origin(kind) is Literal and value not in get_args(kind):
                raise ValueError(f"{field} is {value!r}; it must be one of {get_args(kind)}.")
            least = int(field in _AT_LEAST_ONE)
            if kind is int and not (type(value) is int and least <= value < BEYOND):
                raise ValueError(
                    f"{field} is {value!r}; it must be a whole number, at least {least}, below {BEYOND:,}."
                )
        for field in ("epsilon", "rotary_base"):
            if not 0 < getattr(self, field) < math.inf:
                raise ValueError(f"{field} is {getattr(self, field)}; it must be above 0.")
        for field in ("dropout", "attention_dropout"):
            if not 0 <= (share := getattr(self, field)) < 1:
                raise ValueError(f"{field} is {share}; it must be at least 0 and below 1.")
        if not 0 <= self.cap < math.inf:
            raise ValueError(f"cap is {self.cap}; it must be at least 0.")
        self._check_fit()

    def _check_fit(self) -> None:
        if self.heads % self.key_head_count:
            raise ValueError(f"{self.heads} heads cannot share {self.key_heads} key heads equally.")
        if not self.head_size and self.d_model % self.heads:
            raise ValueError(
                f"d_model {self.d_model} cannot be split into {self.heads} equal heads."
            )
        self.position_law.check(self)
        layers = {"encoder": self.encoder_layers, "decoder": self.decoder_layers}
        for stack, count in layers.items():
            if (stack in self.shape.split("-")) != (count > 0):
                raise ValueError(f"shape {self.shape!r} with {count} {stack} layers.")

    @property
    def head_width(self) -> int:
        """d_k: the width of one head's query, key and value."""
        return self.head_size or self.d_model // self.heads

    @property
    def value_width(self) -> int:
        """d_v: the width of one head's value."""
        return self.value_size or self.head_width

    @property
    def feed_forward_layers(self) -> int:
        """The layers whose feed-forward has no experts."""
        every = (self.encoder_layers + self.decoder_layers) * (self.d_mlp > 0)
        return min(every, self.dense_layers) if self.experts else every

    @property
    def expert_layers(self) -> int:
        """The layers whose feed-forward is made of experts."""
        return max(self.decoder_layers - self.dense_layers, 0) if self.experts else 0

    @property
    def key_head_count(self) -> int:
        """Heads of keys and values."""
        return self.key_heads or self.heads

    @property
    def groups_keys(self) -> bool:
        """Whether several heads of queries share one head of keys and values (Ainslie et al. 2023)."""
        return self.key_head_count < self.heads

    @property
    def is_gated(self) -> bool:
        """Whether the feed-forward multiplies its activations by a second linear map."""
        return self.activation in GATED

    @property
    def position_law(self) -> PositionLaw:
        """The law of the positions."""
        return POSITIONS[self.positions]

    @property
    def has_positions(self) -> bool:
        law = self.position_law
        return law.adds or law.turns or law.biases

    @property
    def has_position_table(self) -> bool:
        """Whether positions are rows of a learned table."""
        return isinstance(self.position_law, Learned)

    @property
    def adds_positions(self) -> bool:
        """Whether a position vector is added to each token vector before the first layer."""
        return self.position_law.adds

    @property
    def turns_positions(self) -> bool:
        """Whether queries and keys are turned by the angles of their positions."""
        return self.position_law.turns

    @property
    def biases_positions(self) -> bool:
        """Whether positions reach the model as numbers that are added to its scores."""
        return self.position_law.biases

    def window_of(self, layer: int) -> int:
        """How many keys a query of this layer reads at most; 0: all."""
        is_full = self.full_every and (layer + 1) % self.full_every == 0
        return 0 if is_full else self.window

    @property
    def projection(self) -> Projection:
        """How queries and keys are made in self-attention."""
        return Projection(self.qkv_bias, self.query_key_norm > 0, self.turns_positions)

    @property
    def rotary_dim(self) -> int:
        """How many dimensions of a head's query and key are turned, where any are."""
        return self.rotary_width or self.head_width

    @property
    def norm_law(self) -> NormLaw:
        """The law of the norms."""
        return NORMS[self.norm]

    @property
    def shifts(self) -> bool:
        """Whether the norms add a β."""
        return self.norm_law.shifts and self.norm_bias

    @property
    def norms_input(self) -> bool:
        """Whether a norm stands before each sub-layer."""
        return NORM_PLACES[self.norm_place].before

    @property
    def norms_sum(self) -> bool:
        """Whether a norm stands after each sum, on the stream itself."""
        return NORM_PLACES[self.norm_place].on_sum

    @property
    def norms_output(self) -> bool:
        """Whether a norm stands on what each sub-layer writes."""
        return NORM_PLACES[self.norm_place].after

    @property
    def masks_future(self) -> bool:
        """Whether a token looks only at itself and earlier tokens, as in every decoder."""
        return self.shape != "encoder"

    @property
    def source(self) -> Stack:
        """The stack that reads the typed text."""
        return "decoder" if self.shape == "decoder" else "encoder"


BEYOND = 2**31  # no size of a model
_KINDS = get_type_hints(TransformerConfig)
