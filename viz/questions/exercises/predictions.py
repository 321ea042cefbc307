"""Exercises on what a model predicts: from logits to probabilities, and the loss. Pure."""

import math
from random import Random

import numpy as np
from numpy.typing import NDArray

from viz.questions.exercises.exercise import (
    Answer,
    Exercise,
    Source,
    bracketed,
    decimal,
    result,
    rounded,
)
from viz.questions.question import quoted, token_name

_FIRST = 6  # likeliest tokens, of which two are compared
_APART = 700.0  # nats: e to 709.8 is the largest number of float64


def logit_difference(source: Source, random: Random) -> Exercise:
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


def loss_of_a_token(source: Source, random: Random) -> Exercise:
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


def _logits(source: Source, position: int) -> tuple[NDArray[np.float64], str]:
    """The logits after a token of the decoder, and the name of the token."""
    token = source.trace.tokens_of("decoder")[position]
    logits = source.trace.require_prediction().after(position).astype(np.float64)
    return logits, token_name(token, position)
