"""Shapes, parameters, memory and floating-point operations, counted from the sizes of a model."""

from __future__ import annotations

from typing import NamedTuple

from model.config import GATED, TransformerConfig


class Stage(NamedTuple):
    """One operation of multi-head attention and the shape of what it leaves."""

    name: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]


class Cost(NamedTuple):
    """One stage of attention: the numbers it leaves in memory and the operations it takes."""

    name: str
    numbers: int
    flops: int


def head_width(width: int, heads: int) -> int:
    """d_model / h; raises ValueError where the heads do not divide the width."""
    if width % heads:
        raise ValueError(f"{heads} heads do not divide a width of {width}.")
    return width // heads


def shape_walk(
    batch: int, length: int, width: int, heads: int, keys: int | None = None
) -> tuple[Stage, ...]:
    """The shape after every operation of multi-head attention, from the input to the output.

    keys: how many tokens are looked at, where it is not the text itself (cross-attention).
    """
    d_k = head_width(width, heads)
    keys = length if keys is None else keys
    model = ("batch", "token", "width")
    split = ("batch", "token", "head", "d_k")
    by_head = ("batch", "head", "token", "d_k")
    table = ("batch", "head", "query", "key")
    whole = (batch, length, width)
    return (
        Stage("Input X", model, whole),
        Stage("Q, K and V", model, whole),
        Stage("Cut into heads", split, (batch, length, heads, d_k)),
        Stage("Heads first", by_head, (batch, heads, length, d_k)),
        Stage("Scores", table, (batch, heads, length, keys)),
        Stage("Weights", table, (batch, heads, length, keys)),
        Stage("Context", by_head, (batch, heads, length, d_k)),
        Stage("Tokens first again", split, (batch, length, heads, d_k)),
        Stage("Heads side by side", model, whole),
        Stage("After W_O", model, whole),
    )


def attention_costs(
    batch: int, length: int, width: int, heads: int, keys: int | None = None
) -> tuple[Cost, ...]:
    """Numbers kept and operations of each stage; a product and its sum count as two operations.

    A softmax counts five operations a score: largest, difference, exponential, sum, division.
    keys: how many tokens are looked at, where it is not the text itself (cross-attention).
    """
    head_width(width, heads)
    keys = length if keys is None else keys
    tokens, table = batch * length, batch * heads * length * keys
    projected = tokens + 2 * batch * keys  # one query a token; a key and a value a token looked at
    mixing = 2 * batch * length * keys * width
    return (
        Cost("Q, K and V", projected * width, 2 * projected * width * width),
        Cost("Scores", table, mixing),
        Cost("Scaled", table, table),
        Cost("Weights", table, 5 * table),
        Cost("Context", tokens * width, mixing),
        Cost("After W_O", tokens * width, 2 * tokens * width * width),
    )


def projection_parameters(width: int, *, biases: bool = False) -> int:
    """W_Q, W_K, W_V and W_O together: 4·d_model², and 4·d_model biases where there are any."""
    return 4 * width * width + (4 * width if biases else 0)


def feed_forward_parameters(width: int, hidden: int) -> int:
    """Two linear maps with their biases: width → hidden → width."""
    return width * hidden + hidden + hidden * width + width


def norm_parameters(width: int) -> int:
    """γ and β of one layer norm."""
    return 2 * width


def parameter_parts(config: TransformerConfig) -> dict[str, int]:
    """Parameters of each part of a transformer, in the order in which they are used.

    A tied output matrix is the token embedding and counts once. Parts without any are left out.
    """
    width, encoder, decoder = config.width, config.encoder_layers, config.decoder_layers
    layers = encoder + decoder
    crossing = decoder if config.shape == "encoder-decoder" else 0
    norm = norm_parameters(width) if config.norm == "layer" else width
    read = config.heads * config.head_width  # of all heads side by side
    shared = (config.key_heads or config.heads) * config.head_width
    attention = 2 * width * (read + shared)
    attention += (read + 2 * shared) * config.qkv_bias + width * config.output_bias
    feeds = feed_forward_parameters(width, config.hidden) if config.hidden else 0
    if config.activation in GATED and config.hidden:
        feeds += width * config.hidden + config.hidden
    if config.hidden and not config.hidden_bias:
        feeds -= width + config.hidden * (2 if config.activation in GATED else 1)
    parts = {
        "Token embedding": config.vocabulary * width,
        "Position embedding": config.context * width * (config.positions == "learned"),
        "Segment embedding": config.segments * width,
        "Norm after the embedding": norm * config.embedding_norm,
        "Attention": (layers + crossing) * attention,
        "Feed-forward": layers * feeds,
        "Norms in the blocks": (layers * (1 + bool(config.hidden)) + crossing) * norm,
        "Final norm": norm * (bool(encoder) + bool(decoder)) * (config.norm_place == "pre"),
        "Output matrix": config.vocabulary * width * (bool(decoder) and not config.tied),
    }
    return {name: count for name, count in parts.items() if count}
