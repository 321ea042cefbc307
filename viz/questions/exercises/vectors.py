"""Exercises on vectors: norms, position encoding, the cut into heads. Pure."""

import math
from random import Random

from viz.questions.exercises.exercise import (
    Answer,
    Exercise,
    Source,
    decimal,
    decimals_of,
    listing,
    result,
    rounded,
)

_ENTRIES = 4  # of a vector that is normalized by hand
_POSITIONS = 60  # that an entry of the encoding is asked of
_RMS = r"\hat x = \frac{x}{\sqrt{\frac{1}{n}\sum_m x_m^2 + \varepsilon}}"
_TRIES = 50  # vectors that are looked at for one whose entries differ as printed


def norm_of_a_vector(source: Source, random: Random) -> Exercise:
    for _ in range(_TRIES):
        norm = random.choice(source.trace.norms)
        token, width = random.randrange(len(norm.input)), norm.input.shape[1]
        first = random.randrange(max(width - _ENTRIES, 0) + 1)
        vector = rounded("x", norm.input[token, first : first + _ENTRIES])
        if len(set(vector.values)) > 1:
            break
    count = len(vector.values)
    mean = sum(vector.values) / count if norm.kind == "layer" else 0.0
    apart = [value - mean for value in vector.values]
    variance = sum(each**2 for each in apart) / count
    deviation = math.sqrt(variance + norm.epsilon)
    out = [each / deviation for each in apart]
    digits = vector.digits + 2
    centred = (
        f"Mean: {decimal(mean, digits)}.",
        f"Differences from it: {listing(apart, digits)}.",
    )
    called = "Variance" if norm.kind == "layer" else "Mean of the squares"
    name = "layer norm" if norm.kind == "layer" else "RMS norm"
    return Exercise(
        f"These are {count} entries of the vector that {norm.name} reads at position {token}. Take them as a "
        f"whole vector and calculate its {name}, without γ and β. ε is {norm.epsilon:g}.",
        tuple(f"entry {entry}" for entry in range(first, first + count)),
        (vector,),
        (
            *(centred if norm.kind == "layer" else ()),
            f"{called}: {decimal(variance, 2 * vector.digits)}.",
            f"Root of it and ε: {decimal(deviation, digits)}.",
            f"Each by the root: {listing(out, 3)}.",
        ),
        (Answer("normalized", tuple(out), 2),),
        "" if norm.kind == "layer" else _RMS,
    )


def norm_of_an_entry(source: Source, random: Random) -> Exercise:
    norm = random.choice(source.trace.norms)
    token, entry = random.randrange(len(norm.input)), random.randrange(norm.input.shape[1])
    named, what = (
        ("deviation", "Difference from the mean") if norm.kind == "layer" else ("root", "x")
    )
    numbers = {
        "x": norm.input[token, entry],
        "mean": norm.mean[token],
        named: 1 / norm.inverse_deviation[token],
        "γ": norm.gamma[entry],
        "β": norm.beta[entry],
    }
    if norm.kind != "layer":
        numbers = {name: numbers[name] for name in ("x", named, "γ")}
    digits = max(decimals_of([float(value)]) for value in numbers.values() if value) + 1
    given = rounded("number", numbers.values(), digits)
    printed = dict(zip(numbers, given.values, strict=True))
    apart = printed["x"] - printed.get("mean", 0.0)
    normalized = apart / printed[named]
    out = normalized * printed["γ"] + printed.get("β", 0.0)
    root = "√(variance + ε)" if norm.kind == "layer" else "√(mean square + ε)"
    return Exercise(
        f"{norm.name}, entry {entry} at position {token}: calculate what the norm gives. The {named} is "
        f"{root} of the whole vector.",
        tuple(numbers),
        (given,),
        (
            f"{what}, by the {named}: {decimal(apart, digits)} / "
            f"{decimal(printed[named], digits)} {result(normalized, 4)}.",
            f"Times γ{', plus β' if 'β' in printed else ''}: {decimal(out, 4)}.",
        ),
        (Answer("output", (out,), 2, (float(norm.output[token, entry]),)),),
        "" if norm.kind == "layer" else rf"y = \gamma\,{_RMS.partition('= ')[2]}",
    )


def position_entry(source: Source, random: Random) -> Exercise:
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


def cut_into_heads(source: Source, random: Random) -> Exercise:
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
