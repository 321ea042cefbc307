"""The sizes and choices that make one transformer: each fact of its architecture has its home
here."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

Shape = Literal["decoder", "encoder", "encoder-decoder"]
Stack = Literal["encoder", "decoder"]
NormKind = Literal["layer", "rms"]
NormPlace = Literal["pre", "post"]
Activation = Literal["relu", "gelu", "gelu_tanh", "silu", "swiglu", "geglu", "geglu_tanh"]
PositionKind = Literal["learned", "sinusoidal", "rotary", "none"]
RotaryPairs = Literal["halves", "neighbours", "other"]
GATED: frozenset[Activation] = frozenset({"swiglu", "geglu", "geglu_tanh"})  # times a second map


@dataclass(frozen=True)
class Projection:
    """How queries and keys are made of what a sub-layer reads; values have the bias alone."""

    bias: bool = True
    normed: bool = False  # each head's vector goes through a norm (Qwen3)
    turned: bool = False  # and is turned by the angle of its position


AS_IN_GPT2 = Projection()
_CHOICES = {
    "shape": Shape,
    "norm": NormKind,
    "norm_place": NormPlace,
    "activation": Activation,
    "positions": PositionKind,
    "rotary_pairs": RotaryPairs,
}
_AT_LEAST_ONE = ("vocabulary", "context", "width", "heads")
_AT_LEAST_ZERO = (
    *("encoder_layers", "decoder_layers", "hidden", "segments"),
    *("key_heads", "head_size", "rotary_width", "query_key_norm"),
)


@dataclass(frozen=True)
class TransformerConfig:
    """Sizes in numbers of values, lengths in tokens. `hidden=0` leaves the feed-forward out.

    Raises ValueError for sizes that do not fit together.
    """

    shape: Shape
    vocabulary: int
    context: int
    width: int  # d_model
    heads: int
    encoder_layers: int = 0
    decoder_layers: int = 0
    hidden: int = 0  # d_ff
    norm: NormKind = "layer"
    norm_place: NormPlace = "pre"
    activation: Activation = "gelu"
    positions: PositionKind = "learned"
    segments: int = 0  # sentence-pair embeddings (BERT)
    embedding_norm: bool = False  # a norm right after the embeddings (BERT)
    scaled_embedding: bool = False  # token vectors times sqrt(d_model) (Vaswani et al. 2017, 3.4)
    qkv_bias: bool = True
    output_bias: bool = True  # of W_O
    tied: bool = True  # the output matrix is the token table
    epsilon: float = 1e-5
    rotary_base: float = 10_000.0
    rotary_pairs: RotaryPairs = "halves"  # i and i + R/2 turn together, or 2i and 2i + 1
    rotary_width: int = 0  # dimensions of a head that turn; 0: all
    dropout: float = 0.0  # in training, on embeddings and sub-layer outputs
    key_heads: int = 0  # heads of keys and values, shared by equal groups of queries; 0: all
    head_size: int = 0  # d_k; 0: width / heads
    hidden_bias: bool = True  # of the feed-forward's maps
    parallel: bool = False  # attention and feed-forward read the same state (GPT-NeoX)
    norm_bias: bool = True  # of layer norms: β
    query_key_norm: int = 0  # γ and β of the norms of a layer's queries and keys (Qwen3)
    shared_norm: bool = False  # one norm a layer, read by attention and feed-forward (Phi)

    def __post_init__(self) -> None:
        for field, choices in _CHOICES.items():
            self._check_choice(field, get_args(choices))
        for field in _AT_LEAST_ONE:
            self._check_size(field, 1)
        for field in _AT_LEAST_ZERO:
            self._check_size(field, 0)
        self._check_numbers()
        self._check_heads()
        self._check_stack("encoder", self.encoder_layers, wanted=self.shape != "decoder")
        self._check_stack("decoder", self.decoder_layers, wanted=self.shape != "encoder")

    def _check_choice(self, field: str, choices: tuple[str, ...]) -> None:
        if getattr(self, field) not in choices:
            raise ValueError(f"{field} is {getattr(self, field)!r}; it must be one of {choices}.")

    def _check_size(self, field: str, smallest: int) -> None:
        size = getattr(self, field)
        if not isinstance(size, int) or size < smallest:
            raise ValueError(
                f"{field} is {size!r}; it must be a whole number, at least {smallest}."
            )

    def _check_numbers(self) -> None:
        for field in ("epsilon", "rotary_base"):
            if not 0 < getattr(self, field) < math.inf:
                raise ValueError(f"{field} is {getattr(self, field)}; it must be above 0.")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout is {self.dropout}; it must be at least 0 and below 1.")

    def _check_heads(self) -> None:
        if self.heads % self.key_head_count:
            raise ValueError(f"{self.heads} heads cannot share {self.key_heads} key heads equally.")
        if not self.head_size and self.width % self.heads:
            raise ValueError(f"width {self.width} cannot be split into {self.heads} equal heads.")
        if self.positions in ("sinusoidal", "rotary") and self.head_width % 2:
            raise ValueError(f"{self.positions} positions need an even head width.")

    def _check_stack(self, stack: Stack, layers: int, *, wanted: bool) -> None:
        if wanted != (layers > 0):
            raise ValueError(f"shape {self.shape!r} with {layers} {stack} layers.")

    @property
    def head_width(self) -> int:
        """d_k: the width of one head's query, key and value."""
        return self.head_size or self.width // self.heads

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
        """Whether the feed-forward multiplies its activated values by a second map's."""
        return self.activation in GATED

    @property
    def adds_positions(self) -> bool:
        """Whether a vector of the position is added to the token's before the first layer."""
        return self.positions in ("learned", "sinusoidal")

    @property
    def turns_positions(self) -> bool:
        """Whether queries and keys are turned by the angle of their position."""
        return self.positions == "rotary"

    @property
    def projection(self) -> Projection:
        """How queries and keys are made in self-attention."""
        return Projection(self.qkv_bias, self.query_key_norm > 0, self.turns_positions)

    @property
    def turned_width(self) -> int:
        """How many dimensions of a head's query and key are turned, where any are."""
        return self.rotary_width or self.head_width

    @property
    def centres(self) -> bool:
        """Whether the norms take away the mean of each vector; an RMS norm does not."""
        return self.norm == "layer"

    @property
    def shifts(self) -> bool:
        """Whether the norms add a β."""
        return self.centres and self.norm_bias

    @property
    def masks_future(self) -> bool:
        """Whether a token may look at itself and those before it only: so in every decoder."""
        return self.shape != "encoder"

    @property
    def source(self) -> Stack:
        """The stack that reads the typed text."""
        return "decoder" if self.shape == "decoder" else "encoder"
