"""Shapes, parameters, memory and floating-point operations, counted from the sizes of a model."""

from typing import NamedTuple

from model.nn.config import TransformerConfig
from model.system.words import Words

say = Words("arithmetic.sizes")

SOFTMAX = 5  # operations per score: maximum, difference, exponential, sum, division


class ShapeStep(NamedTuple):
    """One operation of multi-head attention and the shape of its result."""

    name: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]


class Cost(NamedTuple):
    """One stage of attention: the numbers that it keeps in memory, and its operations."""

    name: str
    numbers: int
    flops: int


def head_width(width: int, heads: int) -> int:
    """d_model / h; raises ValueError where the heads do not divide the width."""
    if width % heads:
        raise ValueError(f"{heads} heads do not divide a width of {width}.")
    return width // heads


def shape_walk(batch: int, length: int, width: int, heads: int) -> tuple[ShapeStep, ...]:
    """The shape after every operation of multi-head attention, from the input to the output.

    Args:
        batch: texts.
        length: tokens of each.
        width: d_model, which the heads share equally.
    """
    d_k = head_width(width, heads)
    model = ("batch", "token", "d_model")
    split = ("batch", "token", "head", "d_k")
    by_head = ("batch", "head", "token", "d_k")
    table = ("batch", "head", "query", "key")
    whole = (batch, length, width)
    return (
        ShapeStep("Input X", model, whole),
        ShapeStep("Q, K and V", model, whole),
        ShapeStep("Cut into heads", split, (batch, length, heads, d_k)),
        ShapeStep("Heads first", by_head, (batch, heads, length, d_k)),
        ShapeStep("Scores", table, (batch, heads, length, length)),
        ShapeStep("Weights", table, (batch, heads, length, length)),
        ShapeStep("Context", by_head, (batch, heads, length, d_k)),
        ShapeStep("Tokens first again", split, (batch, length, heads, d_k)),
        ShapeStep(say("heads_side_side"), model, whole),
        ShapeStep("After W_O", model, whole),
    )


def attention_costs(batch: int, length: int, width: int, heads: int) -> tuple[Cost, ...]:
    """Numbers kept and operations of each stage; a multiplication and an addition are two operations.

    Args:
        batch: texts.
        length: tokens of each.
        width: d_model, which the heads share equally.
    """
    head_width(width, heads)
    tokens, table = batch * length, batch * heads * length * length
    mixing = 2 * batch * length * length * width
    return (
        Cost("Q, K and V", 3 * tokens * width, 6 * tokens * width * width),
        Cost("Scores", table, mixing),
        Cost("Scaled", table, table),
        Cost("Weights", table, SOFTMAX * table),
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
    width, encoder, decoder = config.d_model, config.encoder_layers, config.decoder_layers
    layers = encoder + decoder
    crossing = decoder if config.shape == "encoder-decoder" else 0
    norm = norm_parameters(width) if config.shifts else width
    inner = 2 if config.is_gated else 1
    feeds = (inner + 1) * width * config.d_mlp
    feeds += (inner * config.d_mlp + width) * (config.hidden_bias and config.d_mlp > 0)
    has_feeds = bool(config.d_mlp or config.experts)
    norms = (1 + (has_feeds and not config.shared_norm)) * (
        1 + (config.norms_input and config.norms_output)
    )
    parts = {
        "Token embedding": config.d_vocab * width,
        "Position embedding": config.n_ctx * width * config.has_position_table,
        "Biases of distances": config.buckets * config.heads * (bool(encoder) + bool(decoder)),
        "Segment embedding": config.segments * width,
        say("norm_after_embedding"): norm * config.embedding_norm,
        "Attention": (layers + crossing) * _attention_parameters(config),
        "Feed-forward": config.feed_forward_layers * feeds,
        **{name: config.expert_layers * count for name, count in _expert_parameters(config)},
        say("norms_blocks"): (layers * norms + crossing - (not config.first_norm)) * norm,
        "Final norm": norm * (bool(encoder) + bool(decoder)) * (not config.norms_sum),
        "Output matrix": config.d_vocab * width * (bool(decoder) and not config.tied),
        say("bias_output"): config.d_vocab * config.logits_bias,
    }
    return {name: count for name, count in parts.items() if count}


def parameters_read(config: TransformerConfig) -> int:
    """The parameters that one token meets: of the experts of each layer those that read it."""
    parts = parameter_parts(config)
    experts = parts.get("Experts", 0)
    unread = experts // config.experts * (config.experts - config.experts_read) if experts else 0
    return sum(parts.values()) - unread


def _attention_parameters(config: TransformerConfig) -> int:
    """Of one sub-layer."""
    width, d_k = config.d_model, config.head_width
    read, written = config.heads * d_k, width * config.output_bias + config.heads * config.sinks
    if config.key_latent:
        inner, turned, d_v = config.key_latent, config.turned_key, config.value_width
        latent = config.query_latent
        queries = latent * (width + read + 1) if latent else width * read  # 1: γ of its norm
        keys = width * (inner + turned) + inner + inner * config.heads * (d_k - turned + d_v)
        return queries + keys + config.heads * d_v * width + written
    kept = config.key_head_count * d_k
    return (
        2 * width * (read + kept)
        + config.query_key_norm
        + (read + 2 * kept) * config.qkv_bias
        + written
    )


def _expert_parameters(config: TransformerConfig) -> tuple[tuple[str, int], ...]:
    """Of one layer, by part."""
    width, hidden = config.d_model, config.d_expert
    biases = (2 * hidden + width) * config.expert_bias
    return (
        ("Router", config.experts * (width + config.router_bias)),
        ("Experts", config.experts * (3 * width * hidden + biases)),
        ("Shared experts", 3 * width * config.d_shared),
    )
