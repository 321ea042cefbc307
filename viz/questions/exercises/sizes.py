"""Exercises on sizes: parameters of a configuration, multiplications of attention. Pure."""

from random import Random

from model.arithmetic.sizes import feed_forward_parameters, norm_parameters, projection_parameters
from viz.questions.exercises.exercise import Answer, Exercise, Source

_TIMES = (2, 3, 4)  # how many times as wide the feed-forward may be


def parameters_of_a_block(source: Source, random: Random) -> Exercise:
    heads, times, layers = random.randrange(2, 25), random.choice(_TIMES), random.randrange(2, 41)
    width = heads * source.config.head_width
    maps = projection_parameters(width, biases=True)
    feed_forward = feed_forward_parameters(width, times * width)
    norms = 2 * norm_parameters(width)
    block = maps + feed_forward + norms
    return Exercise(
        f"A model has {layers} layers with {heads} heads each, as wide as the open model's heads: "
        f"{source.config.head_width}. A layer has four maps (W_Q, W_K, W_V, W_O) with biases, a "
        f"feed-forward {times} times as wide with biases, and two layer norms. How many parameters do "
        "all layers have?",
        (),
        (),
        (
            f"Width: {heads} · {source.config.head_width} = {width}.",
            f"Four maps: 4 · ({width}² + {width}) = {maps:,}.",
            f"Feed-forward: {width} · {times * width} + {times * width} + {times * width} · {width} + "
            f"{width} = {feed_forward:,}.",
            f"Two norms, γ and β each: 4 · {width} = {norms:,}.",
            f"One layer: {block:,}; all {layers}: {layers * block:,}.",
        ),
        (Answer("parameters of all layers", (layers * block,), 0),),
    )


def cost_of_attention(source: Source, random: Random) -> Exercise:
    heads, width = source.config.heads, source.config.head_width
    tokens = random.randrange(16, 2049)
    row = 2 * tokens * width
    every = row * tokens * heads
    return Exercise(
        f"The open model's layers have {heads} heads of width {width}. A text has {tokens:,} tokens, without "
        "a mask. How many multiplications are in the scores and the weighted sum of one row of one head, and "
        "how many in those of all rows and heads of a layer? Leave out scaling and softmax.",
        (),
        (),
        (
            f"One row: {tokens:,} scores of {width} products, and {width} entries of {tokens:,} products: "
            f"2 · {tokens:,} · {width} = {row:,}.",
            f"All rows and heads: {row:,} · {tokens:,} · {heads} = {every:,}. Twice the tokens would take "
            "four times as many.",
        ),
        (Answer("one row", (row,), 0), Answer("all rows and heads", (every,), 0)),
    )
