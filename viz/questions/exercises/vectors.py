"""Exercises on vectors, on what a model predicts, and on sizes. Pure."""

import math
from random import Random

import numpy as np
from numpy.typing import NDArray

from model.arithmetic.sizes import feed_forward_parameters, norm_parameters, projection_parameters
from viz.questions.exercises.exercise import (
    Answer,
    Exercise,
    ExerciseSource,
    bracketed,
    decimal,
    decimals_of,
    listing,
    result,
    rounded,
)
from viz.questions.question import quoted, token_name

_ENTRIES = 4  # of a vector that is normalized by hand
_POSITIONS = 60  # that an entry of the encoding is asked of
_TRIES = 50  # vectors that are looked at for one whose entries differ as printed


def norm_of_a_vector(source: ExerciseSource, random: Random) -> Exercise:
    for _ in range(_TRIES):
        norm = random.choice(source.trace.norms)
        token, width = random.randrange(len(norm.input)), norm.input.shape[1]
        first = random.randrange(max(width - _ENTRIES, 0) + 1)
        vector = rounded("x", norm.input[token, first : first + _ENTRIES])
        if len(set(vector.values)) > 1:
            break
    count = len(vector.values)
    law = norm.law
    mean, variance = (float(one[0]) for one in law.statistics(np.array(vector.values)))
    apart = [value - mean for value in vector.values]
    deviation = math.sqrt(variance + norm.epsilon)
    out = [each / deviation for each in apart]
    digits = vector.digits + 2
    centred = (
        f"Mean: {decimal(mean, digits)}.",
        f"Differences from it: {listing(apart, digits)}.",
    )
    return Exercise(
        f"These are {count} entries of the vector that {norm.name} reads at position {token}. Take them as a "
        f"whole vector and calculate its {law.name}, without γ and β. ε is {norm.epsilon:g}.",
        tuple(f"entry {entry}" for entry in range(first, first + count)),
        (vector,),
        (
            *(centred if law.centres else ()),
            f"{law.size_in_words}: {decimal(variance, 2 * vector.digits)}.",
            f"Root of it and ε: {decimal(deviation, digits)}.",
            f"Each by the root: {listing(out, 3)}.",
        ),
        (Answer("normalized", tuple(out), 2),),
        law.recalled,
    )


def norm_of_an_entry(source: ExerciseSource, random: Random) -> Exercise:
    norm = random.choice(source.trace.norms)
    token, entry = random.randrange(len(norm.input)), random.randrange(norm.input.shape[1])
    law = norm.law
    named = law.spread_of_entry
    numbers = {
        "x": norm.input[token, entry],
        "mean": norm.mean[token],
        named: 1 / norm.inverse_deviation[token],
        "γ": norm.gamma[entry],
        "β": norm.beta[entry],
    }
    absent = {"mean": not law.centres, "β": not law.shifts}
    numbers = {name: number for name, number in numbers.items() if not absent.get(name)}
    digits = max(decimals_of([float(value)]) for value in numbers.values() if value) + 1
    given = rounded("number", numbers.values(), digits)
    printed = dict(zip(numbers, given.values, strict=True))
    apart = printed["x"] - printed.get("mean", 0.0)
    normalized = apart / printed[named]
    out = normalized * printed["γ"] + printed.get("β", 0.0)
    return Exercise(
        f"{norm.name}, entry {entry} at position {token}: calculate what the norm gives. The {named} is "
        f"√({law.size} + ε) of the whole vector.",
        tuple(numbers),
        (given,),
        (
            f"{law.entry}, by the {named}: {decimal(apart, digits)} / "
            f"{decimal(printed[named], digits)} {result(normalized, 4)}.",
            f"Times γ{', plus β' if 'β' in printed else ''}: {decimal(out, 4)}.",
        ),
        (Answer("output", (out,), 2, (float(norm.output[token, entry]),)),),
        law.recalled and rf"y = \gamma\,{law.recalled.partition('= ')[2]}",
    )


def position_entry(source: ExerciseSource, random: Random) -> Exercise:
    width = source.config.d_model
    position, column = random.randrange(1, _POSITIONS + 1), random.randrange(width)
    pair = column // 2
    angle = position / 10_000.0 ** (2 * pair / width)
    even = column % 2 == 0
    value = math.sin(angle) if even else math.cos(angle)
    function = "sine" if even else "cosine"
    return Exercise(
        f"The encoding with sine and cosine, at the open model's width of {width}: calculate column {column} "
        f"at position {position}. Columns count from 0.",
        (),
        (),
        (
            f"Column {column} is {'even' if even else 'odd'}: the {function} of pair i = {pair}.",
            f"Angle: {position} / 10,000^(2·{pair}/{width}) ≈ {decimal(angle, 6)} in radians.",
            f"Its {function}: {decimal(value, 4)}.",
        ),
        (Answer(f"column {column} at position {position}", (value,), 4),),
    )


def cut_into_heads(source: ExerciseSource, random: Random) -> Exercise:
    attention = random.choice(source.trace.attention)
    heads, tokens, width = attention.query.shape
    keys = attention.key.shape[1]
    batch, column = random.randrange(2, 65), random.randrange(heads * width)
    head, entry = divmod(column, width)
    return Exercise(
        f"{attention.name}: a batch of {batch} sentences, each as long as this one, has queries of shape "
        f"({batch}, {tokens}, {heads * width}). They are cut into {heads} heads. What is their shape then, "
        f"what is the shape of the scores over {keys} keys, and in which head and entry is column {column}?",
        (),
        (),
        (
            f"Width of a head: {heads * width} / {heads} = {width}.",
            f"Queries: ({batch}, {heads}, {tokens}, {width}). Scores: a row for each query, a column for "
            f"each key: ({batch}, {heads}, {tokens}, {keys}).",
            f"{column} = {head} · {width} + {entry}: head {head}, entry {entry}.",
        ),
        (
            Answer("shape of the queries", (batch, heads, tokens, width), 0),
            Answer("shape of the scores", (batch, heads, tokens, keys), 0),
            Answer("head and entry", (head, entry), 0),
        ),
    )


_TIMES = (2, 3, 4)  # how many times as wide the feed-forward may be


def parameters_of_a_block(source: ExerciseSource, random: Random) -> Exercise:
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


def cost_of_attention(source: ExerciseSource, random: Random) -> Exercise:
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


_FIRST = 6  # likeliest tokens, of which two are compared
_APART = 700.0  # nats: e to 709.8 is the largest number of float64


def logit_difference(source: ExerciseSource, random: Random) -> Exercise:
    logits, after = _logits(source, random.randrange(source.trace.require_prediction().shape[0]))
    one, other = sorted(random.sample(_likeliest(logits), 2), key=lambda token: -logits[token])
    names = tuple(f"{quoted(token)} (id {token.id})" for token in source.named((one, other)))
    given = rounded("logit", (logits[one], logits[other]), 2)
    apart = given.values[0] - given.values[1]
    if apart > _APART:
        raise ValueError(
            f"These logits lie {decimal(apart, 0)} apart, and e to that is larger than any number of float64."
        )
    ratio, share = math.exp(apart), 1 / (1 + math.exp(-apart))
    exact = float(logits[one] - logits[other])
    return Exercise(
        f"After {after}: how many times as likely is the first of these tokens as the second? If there were "
        "only these two, what would the probability of the first be?",
        names,
        (given,),
        (
            f"Difference of the logits: {decimal(apart, 2)}.",
            f"Ratio of the probabilities: e^{decimal(apart, 2)} ≈ {decimal(ratio, 2)}.",
            f"Of the two alone: {decimal(ratio, 4)} / (1 + {decimal(ratio, 4)}) ≈ {decimal(share, 3)}.",
        ),
        (
            Answer("ratio", (ratio,), 2, (math.exp(exact),)),
            Answer("probability of the first", (share,), 3, (1 / (1 + math.exp(-exact)),)),
        ),
    )


def loss_of_a_token(source: ExerciseSource, random: Random) -> Exercise:
    tokens = source.trace.tokens_of("decoder")
    at = random.randrange(len(tokens) - 1)
    logits, after = _logits(source, at)
    wanted = random.choice([*_likeliest(logits), tokens[at + 1].id])
    (followed,) = source.named((wanted,))
    total = float(logits.max() + np.log(np.exp(logits - logits.max()).sum()))
    given = rounded("number", (logits[wanted], total), 2)
    loss = given.values[1] - given.values[0]
    if loss > _APART:
        raise ValueError(
            f"The loss of this token is {decimal(loss, 0)} nats, and e to that is larger than any number of "
            "float64."
        )
    exact = total - float(logits[wanted])
    return Exercise(
        f"Suppose that {quoted(followed)} (id {wanted}) follows after {after}. Calculate the loss of this "
        "token in nats, its probability, and its perplexity, which is e to the loss.",
        ("logit of the token", "ln of the sum of all exponentials"),
        (given,),
        (
            f"Loss: {given.written[1]} − {bracketed(given.written[0])} {result(loss, 2)}.",
            f"Probability: e^−{decimal(loss, 2)} ≈ {decimal(math.exp(-loss), 4)}.",
            f"Perplexity: e^{decimal(loss, 2)} ≈ {decimal(math.exp(loss), 2)}.",
        ),
        (
            Answer("loss in nats", (loss,), 2, (exact,)),
            Answer("probability", (math.exp(-loss),), 4, (math.exp(-exact),)),
            Answer("perplexity", (math.exp(loss),), 2, (math.exp(exact),)),
        ),
    )


def _likeliest(logits: NDArray[np.float64]) -> list[int]:
    """Ids of the likeliest tokens, in order of their ids."""
    return sorted(np.argpartition(-logits, min(_FIRST, len(logits) - 1))[:_FIRST].tolist())


def _logits(source: ExerciseSource, position: int) -> tuple[NDArray[np.float64], str]:
    """The logits after a token of the decoder, and the name of the token."""
    token = source.trace.tokens_of("decoder")[position]
    logits = source.trace.require_prediction().after(position).astype(np.float64)
    return logits, token_name(token, position)
