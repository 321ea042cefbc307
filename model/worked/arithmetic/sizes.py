"""Shapes, parameters, memory and floating-point operations, counted from the sizes of a model."""

from __future__ import annotations

from typing import NamedTuple


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


def shape_walk(batch: int, length: int, width: int, heads: int) -> tuple[Stage, ...]:
    """The shape after every operation of multi-head attention, from the input to the output."""
    d_k = head_width(width, heads)
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
        Stage("Scores", table, (batch, heads, length, length)),
        Stage("Weights", table, (batch, heads, length, length)),
        Stage("Context", by_head, (batch, heads, length, d_k)),
        Stage("Tokens first again", split, (batch, length, heads, d_k)),
        Stage("Heads side by side", model, whole),
        Stage("After W_O", model, whole),
    )


def attention_costs(batch: int, length: int, width: int, heads: int) -> tuple[Cost, ...]:
    """Numbers kept and operations of each stage; a product and its sum count as two operations.

    A softmax counts five operations a score: largest, difference, exponential, sum, division.
    """
    head_width(width, heads)
    tokens, table = batch * length, batch * heads * length * length
    mixing = 2 * batch * length * length * width
    return (
        Cost("Q, K and V", 3 * tokens * width, 6 * tokens * width * width),
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


def gpt_parts(vocabulary: int, context: int, width: int, layers: int) -> dict[str, int]:
    """Parameters of each part of a pre-LN GPT without biases on Q, K and V (W_O has one)."""
    attention = layers * (projection_parameters(width) + width)
    return {
        "Token embedding": vocabulary * width,
        "Position embedding": context * width,
        "Attention": attention,
        "Feed-forward": layers * feed_forward_parameters(width, 4 * width),
        "Norms in the blocks": layers * 2 * norm_parameters(width),
        "Final norm": norm_parameters(width),
        "Output matrix": width * vocabulary,
    }


def post_norm_parts(
    vocabulary: int, context: int, width: int, hidden: int, layers: int
) -> dict[str, int]:
    """Parameters of a post-LN decoder-only model with biases everywhere and an untied output."""
    return {
        "Token embedding": vocabulary * width,
        "Position embedding": context * width,
        "Attention": layers * projection_parameters(width, biases=True),
        "Feed-forward": layers * feed_forward_parameters(width, hidden),
        "Norms in the layers": layers * 2 * norm_parameters(width),
        "Output matrix and bias": width * vocabulary + vocabulary,
    }
