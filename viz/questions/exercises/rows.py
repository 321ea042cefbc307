"""Exercises on one row of one head: scores, softmax, weights, the weighted sum. Pure."""

from math import exp, log
from random import Random

from viz.questions.exercises.exercise import (
    Answer,
    Exercise,
    ExerciseSource,
    answered,
    bracketed,
    decimal,
    draw_row,
    listing,
    products,
    result,
    rounded,
)

_ENTRIES = 3  # of a query and a key that are multiplied by hand
_TRIES = 50  # rows that are looked at for one whose largest score stands out as printed
_MOST = 0.95  # weight of a key that is masked: the others must have something left
_SCORES = "score, as the softmax reads it"


def softmax_of_a_row(source: ExerciseSource, random: Random) -> Exercise:
    row = draw_row(source, random)
    scores = rounded(_SCORES, row.scores, 2)
    largest = max(scores.values)
    lowered = [score - largest for score in scores.values]
    powers = [exp(each) for each in lowered]
    weights = [power / sum(powers) for power in powers]
    own = row.weights(row.keys)
    part = sum(own)
    others = "" if not row.others else " Calculate as if all other keys were masked."
    return Exercise(
        f"In {row.name}: turn the scores into weights with the softmax.{others}",
        row.labels,
        (scores,),
        (
            f"Subtract the largest score, {decimal(largest, 2)}: {listing(lowered, 2)}.",
            f"Exponentials: {listing(powers, 4)}.",
            f"Their sum: {decimal(sum(powers), 4)}.",
            f"Each exponential by the sum: {listing(weights, 3)}.",
        ),
        answered(row.labels, weights, 3, [weight / part for weight in own]),
    )


def scaled_score(source: ExerciseSource, random: Random) -> Exercise:
    row = draw_row(source, random)
    at = random.randrange(len(row.keys))
    key, width = row.keys[at], row.attention.query.shape[2]
    query_vector = row.attention.query[row.head, row.query].astype(float)
    key_vector = row.attention.key[row.head, key].astype(float)
    entries = sorted(random.sample(range(width), min(_ENTRIES, width)))
    query, wanted = (
        rounded(name, vector[entries])
        for name, vector in (("query", query_vector), ("key", key_vector))
    )
    every = query_vector * key_vector
    rest = rounded("the others", [every.sum() - every[entries].sum()], 2)
    shown = sum(a * b for a, b in zip(query.values, wanted.values, strict=True))
    score = shown + rest.values[0]
    scale = round(row.attention.scale, 4)
    more = (
        f" The vectors have {width} entries; the products of those that are not in the table sum to "
        f"{rest.written[0]}."
        if width > len(entries)
        else ""
    )
    last = (
        f"With the others: {decimal(shown, 4)} + {bracketed(rest.written[0])} {result(score, 4)}."
    )
    return Exercise(
        f"In {row.name}, for the key {row.labels[at]}: calculate the score of query and key, and scale "
        f"it.{more} The scale is {decimal(scale, 4)}.",
        tuple(f"entry {entry}" for entry in entries),
        (query, wanted),
        (
            f"Products: {products(query, wanted)} {result(shown, 4)}.",
            *([last] if more else []),
            f"Times {decimal(scale, 4)}: {decimal(score * scale, 2)}.",
        ),
        (
            Answer("score", (score,), 2, (float(every.sum()),)),
            Answer(
                "scaled score", (score * scale,), 2, (float(every.sum()) * row.attention.scale,)
            ),
        ),
    )


def weighted_sum(source: ExerciseSource, random: Random) -> Exercise:
    row = draw_row(source, random)
    entry = random.randrange(row.attention.value.shape[2])
    values = row.attention.value[row.head, :, entry].astype(float)
    weights = rounded("weight", row.weights(row.keys), 3)
    shown = rounded(f"entry {entry} of the value", values[list(row.keys)])
    others = sum(
        weight * values[key]
        for weight, key in zip(row.weights(row.others), row.others, strict=True)
    )
    rest = rounded("other keys", [others], 4)
    product = sum(a * b for a, b in zip(weights.values, shown.values, strict=True))
    total = product + rest.values[0]
    more = f" The other keys of the row add {rest.written[0]}." if row.others else ""
    last = f"With the other keys: {decimal(product, 4)} + {bracketed(rest.written[0])} {result(total, 4)}."
    return Exercise(
        f"In {row.name}: calculate entry {entry} of the head's output, the sum of weight times value.{more}",
        row.labels,
        (weights, shown),
        (f"{products(weights, shown)} {result(product, 4)}.", *([last] if row.others else [])),
        (
            Answer(
                f"entry {entry} of the output",
                (total,),
                shown.digits,
                (float(row.attention.output[row.head, row.query, entry]),),
            ),
        ),
    )


def largest_weight(source: ExerciseSource, random: Random) -> Exercise:
    for _ in range(_TRIES):
        row = draw_row(source, random)
        scores, exact = rounded(_SCORES, row.scores, 2), row.scores
        best, following = sorted(range(len(exact)), key=lambda at: -exact[at])[:2]
        apart = scores.values[best] - scores.values[following]
        if apart > 0:
            break
    own = row.weights((row.keys[best], row.keys[following]))
    return Exercise(
        f"In {row.name}: which of these keys gets the largest weight, and how many times as large as the "
        "next largest is it? You need only one exponential.",
        row.labels,
        (scores,),
        (
            f"The softmax keeps the order: {row.labels[best]} has the largest score, "
            f"{row.labels[following]} the next.",
            "Two weights of a row have the same sum below, so their ratio is e to the difference: "
            f"e^({scores.written[best]} − {bracketed(scores.written[following])}) = e^{decimal(apart, 2)} "
            f"≈ {_ratio(exp(apart))}.",
        ),
        (
            Answer(
                f"{row.labels[best]}, times the next",
                (exp(apart),),
                _ratio_digits(exp(apart)),
                (own[0] / own[1],) if own[1] else (),
            ),
        ),
    )


def masked_row(source: ExerciseSource, random: Random) -> Exercise:
    row = draw_row(source, random)
    own = row.weights(row.keys)
    hidden = max(
        (at for at in range(len(own)) if own[at] <= _MOST), key=lambda at: own[at], default=0
    )
    weights = rounded("weight", own, 3)
    left = 1 - weights.values[hidden]
    stay = [at for at in range(len(own)) if at != hidden]
    renewed = [weights.values[at] / left for at in stay]
    return Exercise(
        f"In {row.name}: mask the key {row.labels[hidden]} and normalize the row again. What are the "
        "weights of the other keys in the table then?",
        row.labels,
        (weights,),
        (
            f"Without it the row sums to 1 − {weights.written[hidden]} = {decimal(left, 3)}.",
            "Each other weight is divided by this sum: "
            + ", ".join(
                f"{weights.written[at]} / {decimal(left, 3)} {result(new, 3)}"
                for at, new in zip(stay, renewed, strict=True)
            )
            + ".",
        ),
        answered(
            [row.labels[at] for at in stay],
            renewed,
            3,
            [own[at] / (1 - own[hidden]) for at in stay],
        ),
    )


def entropy_of_a_row(source: ExerciseSource, random: Random) -> Exercise:
    row = draw_row(source, random)
    weights = rounded("weight", row.weights(row.keys), 3)
    rest = rounded("others", [sum(map(_surprise, row.weights(row.others)))], 3)
    parts = [_surprise(weight) for weight in weights.values]
    total = sum(parts) + rest.values[0]
    exact = sum(map(_surprise, row.weights((*row.keys, *row.others))))
    more = f" The other keys of the row add {rest.written[0]}." if row.others else ""
    return Exercise(
        f"In {row.name}: calculate the entropy of the weights in nats. A weight of 0 adds nothing.{more}",
        row.labels,
        (weights,),
        (
            f"−w ln w of each: {listing(parts, 3)}.",
            f"Their sum{' with the others' if row.others else ''} {result(total, 3)}. All on one key would "
            f"be 0; evenly on {len(row.keys) + len(row.others)} keys it would be "
            f"ln {len(row.keys) + len(row.others)} ≈ {log(len(row.keys) + len(row.others)):.3f}.",
        ),
        (Answer("entropy in nats", (total,), 2, (exact,)),),
    )


def _surprise(weight: float) -> float:
    return -weight * log(weight) if weight > 0 else 0.0


def _ratio_digits(ratio: float) -> int:
    """Decimals that show three digits of a ratio from 1 up."""
    return 2 if ratio < 10 else 1 if ratio < 100 else 0


def _ratio(ratio: float) -> str:
    return decimal(ratio, _ratio_digits(ratio))
