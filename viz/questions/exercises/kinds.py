"""The kinds of exercises, in the order in which they stand on a sheet. Pure.

To add one, write a function that draws its numbers, and an entry of `KINDS`.
"""

import math
from random import Random

import numpy as np
from numpy.typing import NDArray

from model.arithmetic.sizes import feed_forward_parameters, norm_parameters, projection_parameters
from model.trace.records import NormRecord
from model.trace.unproven import proven
from viz.notation.names import norm_name, sublayer_name
from viz.notation.words import sentences_of
from viz.questions.exercises.exercise import (
    Answer,
    Exercise,
    ExerciseKind,
    ExerciseSource,
    answered,
    bracketed,
    decimal,
    decimals_of,
    draw_row,
    listing,
    products,
    result,
    rounded,
)
from viz.questions.question import quoted, token_name

say = sentences_of("questions.exercises_kinds")

_PRODUCTS = 3  # of a query and a key that are multiplied by hand
_SCORES = say("score_softmax_reads")


def softmax_of_a_row(source: ExerciseSource, random: Random) -> Exercise:
    row = draw_row(source, random)
    scores = rounded(_SCORES, row.scores, 2)
    largest = max(scores.values)
    lowered = [score - largest for score in scores.values]
    powers = [math.exp(each) for each in lowered]
    weights = [power / sum(powers) for power in powers]
    own = row.weights(row.keys)
    part = sum(own)
    others = "" if not row.others else say("calculate_other_keys")
    return Exercise(
        say("turn_scores_into", row=row.name, others=others),
        row.labels,
        (scores,),
        (
            say("subtract_largest_score", largest=decimal(largest, 2), listing=listing(lowered, 2)),
            f"Exponentials: {listing(powers, 4)}.",
            f"Their sum: {decimal(sum(powers), 4)}.",
            say("exponential_sum", listing=listing(weights, 3)),
        ),
        answered(row.labels, weights, 3, [weight / part for weight in own]),
    )


def scaled_score(source: ExerciseSource, random: Random) -> Exercise:
    row = draw_row(source, random)
    at = random.randrange(len(row.keys))
    key, width = row.keys[at], row.attention.query.shape[2]
    query_vector = row.attention.query[row.head, row.query].astype(float)
    key_vector = row.attention.key[row.head, key].astype(float)
    entries = sorted(random.sample(range(width), min(_PRODUCTS, width)))
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
        say("vectors_entries_products", width=width, first_written=rest.written[0])
        if width > len(entries)
        else ""
    )
    last = (
        f"With the others: {decimal(shown, 4)} + {bracketed(rest.written[0])} {result(score, 4)}."
    )
    return Exercise(
        say(
            "key_calculate_score",
            row=row.name,
            labels=row.labels[at],
            more=more,
            scale=decimal(scale, 4),
        ),
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
    shown = rounded(say("entry_value", entry=entry), values[list(row.keys)])
    others = sum(
        weight * values[key]
        for weight, key in zip(row.weights(row.others), row.others, strict=True)
    )
    rest = rounded("other keys", [others], 4)
    product = sum(a * b for a, b in zip(weights.values, shown.values, strict=True))
    total = product + rest.values[0]
    more = say("other_keys_row_add", first_written=rest.written[0]) if row.others else ""
    last = say(
        "other_keys",
        product=decimal(product, 4),
        first_written=bracketed(rest.written[0]),
        total=result(total, 4),
    )
    return Exercise(
        say("calculate_entry_head", row=row.name, entry=entry, more=more),
        row.labels,
        (weights, shown),
        (f"{products(weights, shown)} {result(product, 4)}.", *([last] if row.others else [])),
        (
            Answer(
                say("entry_output", entry=entry),
                (total,),
                shown.digits,
                (float(row.attention.output[row.head, row.query, entry]),),
            ),
        ),
    )


def largest_weight(source: ExerciseSource, random: Random) -> Exercise | None:
    row = draw_row(source, random)
    scores, exact = rounded(_SCORES, row.scores, 2), row.scores
    best, following = sorted(range(len(exact)), key=lambda at: -exact[at])[:2]
    apart = scores.values[best] - scores.values[following]
    if apart <= 0:
        return None
    ratio = math.exp(apart)
    digits = 2 if ratio < 10 else 1 if ratio < 100 else 0  # three digits of a ratio from 1 up
    own = row.weights((row.keys[best], row.keys[following]))
    return Exercise(
        say("keys_gets_largest", row=row.name),
        row.labels,
        (scores,),
        (
            say(
                "softmax_keeps_order",
                best_labels=row.labels[best],
                following_labels=row.labels[following],
            ),
            say(
                "weights_row_same",
                best_written=scores.written[best],
                following_written=bracketed(scores.written[following]),
                apart=decimal(apart, 2),
                exp=decimal(ratio, digits),
            ),
        ),
        (
            Answer(
                f"{row.labels[best]}, times the next",
                (ratio,),
                digits,
                (own[0] / own[1],) if own[1] else (),
            ),
        ),
    )


def masked_row(source: ExerciseSource, random: Random) -> Exercise:
    row = draw_row(source, random)
    own = row.weights(row.keys)
    hidden = max(range(len(own)), key=lambda at: own[at])
    weights = rounded("weight", own, 3)
    left = 1 - weights.values[hidden]
    stay = [at for at in range(len(own)) if at != hidden]
    renewed = [weights.values[at] / left for at in stay]
    return Exercise(
        say("mask_key_normalize", row=row.name, hidden_labels=row.labels[hidden]),
        row.labels,
        (weights,),
        (
            say("without_row_sums", hidden_written=weights.written[hidden], left=decimal(left, 3)),
            say("other_weight_divided")
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
    more = say("other_keys_row_add", first_written=rest.written[0]) if row.others else ""
    return Exercise(
        say("calculate_entropy_weights", row=row.name, more=more),
        row.labels,
        (weights,),
        (
            f"−w ln w of each: {listing(parts, 3)}.",
            say(
                "sum_key_0_evenly",
                choice=" with the others" if row.others else "",
                total=result(total, 3),
                keys=len(row.keys) + len(row.others),
                log=math.log(len(row.keys) + len(row.others)),
            ),
        ),
        (Answer("entropy in nats", (total,), 2, (exact,)),),
    )


def _surprise(weight: float) -> float:
    return -weight * math.log(weight) if weight > 0 else 0.0


_ENTRIES = 4  # of a vector that is normalized by hand
_POSITIONS = 60  # that an entry of the encoding is asked of


def norm_of_a_vector(source: ExerciseSource, random: Random) -> Exercise:
    norm = random.choice(source.trace.norms)
    token, width = random.randrange(len(norm.input)), norm.input.shape[1]
    first = random.randrange(max(width - _ENTRIES, 0) + 1)
    vector = rounded("x", norm.input[token, first : first + _ENTRIES])
    count = len(vector.values)
    law = norm.law
    mean, variance = (float(one[0]) for one in law.statistics(np.array(vector.values)))
    apart = [value - mean for value in vector.values]
    deviation = math.sqrt(variance + norm.epsilon)
    out = [each / deviation for each in apart]
    digits = vector.digits + 2
    centred = (f"Mean: {decimal(mean, digits)}.", f"Differences from it: {listing(apart, digits)}.")
    return Exercise(
        say(
            "entries_vector_norm",
            count=count,
            token=token,
            norm_name=_norm_name(source, norm),
            law=law.name,
            epsilon=norm.epsilon,
        ),
        tuple(f"entry {entry}" for entry in range(first, first + count)),
        (vector,),
        (
            *(centred if law.centres else ()),
            f"{law.size_in_words}: {decimal(variance, 2 * vector.digits)}.",
            say("root", deviation=decimal(deviation, digits)),
            say("root_2", listing=listing(out, 3)),
        ),
        (Answer("normalized", tuple(out), 2),),
        law.recalled,
    )


def _norm_name(source: ExerciseSource, norm: NormRecord) -> str:
    return norm_name(norm.name, source.config, stacks=len(source.trace.stacks))


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
        say(
            "entry_position_calculate",
            norm_name=_norm_name(source, norm),
            entry=entry,
            token=token,
            named=named,
            law=law.size,
        ),
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
        say("encoding_sine_cosine", width=width, column=column, position=position),
        (),
        (),
        (
            say(
                "column_pair_i",
                column=column,
                choice="even" if even else "odd",
                function=function,
                pair=pair,
            ),
            f"Angle: {position} / 10,000^(2·{pair}/{width}) ≈ {decimal(angle, 6)} in radians.",
            f"Its {function}: {decimal(value, 4)}.",
        ),
        (Answer(f"column {column} at position {position}", (value,), 4),),
    )


def cut_into_heads(source: ExerciseSource, random: Random) -> Exercise:
    attention = random.choice(source.trace.attention)
    heads, tokens, width = attention.query.shape
    keys = attention.key.shape[1]
    others = {
        heads,
        tokens,
        keys,
        width,
    }  # a batch of another number, so that no two axes look alike
    batch = random.choice([number for number in range(2, 65) if number not in others])
    head, entry = (
        random.randrange(min(1, heads - 1), heads),
        random.randrange(min(2, width - 1), width),
    )
    column = head * width + entry
    where = sublayer_name(attention.name, stacks=len(source.trace.stacks))
    return Exercise(
        say(
            "batch_sentences_long",
            where=where,
            batch=batch,
            tokens=tokens,
            heads=heads * width,
            heads_2=heads,
            keys=keys,
            column=column,
        ),
        (),
        (),
        (
            f"Width of a head: {heads * width} / {heads} = {width}.",
            say(
                "queries_scores_row",
                batch=batch,
                heads=heads,
                tokens=tokens,
                width=width,
                keys=keys,
            ),
            f"{column} = {head} · {width} + {entry}: head {head}, entry {entry}.",
        ),
        (
            Answer(say("shape_queries"), (batch, heads, tokens, width), 0),
            Answer(say("shape_scores"), (batch, heads, tokens, keys), 0),
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
        say(
            "model_layers_heads",
            layers=layers,
            heads=heads,
            head_width=source.config.head_width,
            times=times,
        ),
        (),
        (),
        (
            f"Width: {heads} · {source.config.head_width} = {width}.",
            f"Four maps: 4 · ({width}² + {width}) = {maps:,}.",
            f"Feed-forward: {width} · {times * width} + {times * width} + {times * width} · {width} + "
            f"{width} = {feed_forward:,}.",
            say("norms_4", width=width, norms=norms),
            f"One layer: {block:,}; all {layers}: {layers * block:,}.",
        ),
        (Answer(say("parameters_layers"), (layers * block,), 0),),
    )


def cost_of_attention(source: ExerciseSource, random: Random) -> Exercise:
    heads, width = source.config.heads, source.config.head_width
    tokens = random.randrange(16, 2049)
    row = 2 * tokens * width
    every = row * tokens * heads
    return Exercise(
        say("open_model_layers", heads=heads, width=width, tokens=tokens),
        (),
        (),
        (
            say("row_scores_products", tokens=tokens, width=width, row=row),
            say("rows_heads_twice", row=row, tokens=tokens, heads=heads, every=every),
        ),
        (Answer("one row", (row,), 0), Answer(say("rows_heads"), (every,), 0)),
    )


_FIRST = 6  # likeliest tokens, of which two are compared
_APART = (
    9.0  # nats between two numbers, whose exponentials a pocket calculator shows with some digits
)


def logit_difference(source: ExerciseSource, random: Random) -> Exercise | None:
    logits, after = _logits(source, random.randrange(source.trace.require_prediction().shape[0]))
    one, other = sorted(random.sample(_likeliest(logits), 2), key=lambda token: -logits[token])
    names = tuple(f"{quoted(token)} (id {token.id})" for token in source.named((one, other)))
    given = rounded("logit", (logits[one], logits[other]), 2)
    apart = given.values[0] - given.values[1]
    if apart > _APART:
        return None
    ratio, share = math.exp(apart), 1 / (1 + math.exp(-apart))
    exact = float(logits[one] - logits[other])
    return Exercise(
        say("after_many_times", after=after),
        names,
        (given,),
        (
            say("difference_logits", apart=decimal(apart, 2)),
            say("ratio_probabilities_e", apart=decimal(apart, 2), ratio=decimal(ratio, 2)),
            say("alone_1", ratio=decimal(ratio, 4), share=decimal(share, 3)),
        ),
        (
            Answer("ratio", (ratio,), 2, (math.exp(exact),)),
            Answer(say("probability_first"), (share,), 3, (1 / (1 + math.exp(-exact)),)),
        ),
    )


def loss_of_a_token(source: ExerciseSource, random: Random) -> Exercise | None:
    tokens = source.trace.tokens_of("decoder")
    at = random.randrange(len(tokens) - 1)
    logits, after = _logits(source, at)
    wanted = random.choice([*_likeliest(logits), tokens[at + 1].id])
    (followed,) = source.named((wanted,))
    total = float(logits.max() + np.log(np.exp(logits - logits.max()).sum()))
    given = rounded("number", (logits[wanted], total), 2)
    loss = given.values[1] - given.values[0]
    if loss > _APART:
        return None
    exact = total - float(logits[wanted])
    return Exercise(
        say("suppose_id_follows", quoted=quoted(followed), wanted=wanted, after=after),
        (say("logit_token"), say("ln_sum_exponentials")),
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


def _has_norms(source: ExerciseSource) -> bool:
    return bool(proven(source.trace.norms))


def _predicts(source: ExerciseSource) -> bool:
    return source.trace.prediction is not None and len(source.trace.tokens_of("decoder")) > 1


KINDS: tuple[ExerciseKind, ...] = (
    ExerciseKind(
        "Position encoding",
        r"p_{2i} = \sin\frac{pos}{10000^{2i/d}},\quad p_{2i+1} = \cos\frac{pos}{10000^{2i/d}}",
        position_entry,
    ),
    ExerciseKind("Cut into heads", r"(B, n, h\,d_k) \to (B, h, n, d_k)", cut_into_heads),
    ExerciseKind("A scaled score", r"s = \text{scale} \cdot \sum_m q_m k_m", scaled_score),
    ExerciseKind("Softmax of a row", r"a_j = \frac{e^{s_j}}{\sum_m e^{s_m}}", softmax_of_a_row),
    ExerciseKind("The largest weight", r"\frac{a_i}{a_j} = e^{s_i - s_j}", largest_weight),
    ExerciseKind("Mask a key", r"a'_j = \frac{a_j}{1 - a_m}", masked_row),
    ExerciseKind("A weighted sum", r"o = \sum_j a_j v_j", weighted_sum),
    ExerciseKind("Entropy of a row", r"H = -\sum_j a_j \ln a_j", entropy_of_a_row),
    ExerciseKind(
        say("norm_short_vector"),
        r"\hat x = \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}}",
        norm_of_a_vector,
        _has_norms,
    ),
    ExerciseKind(
        say("entry_norm"),
        r"y = \gamma\,\frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} + \beta",
        norm_of_an_entry,
        _has_norms,
    ),
    ExerciseKind(
        "Parameters", r"4(d^2 + d) + 2\,d\,d_{mlp} + d_{mlp} + d + 4d", parameters_of_a_block
    ),
    ExerciseKind("Cost of attention", r"2\,n\,d_k\ \text{a row}", cost_of_attention),
    ExerciseKind(
        say("logits_probability"),
        r"\frac{p_1}{p_2} = e^{\ell_1 - \ell_2}",
        logit_difference,
        _predicts,
    ),
    ExerciseKind(
        "Loss of a token", r"L = \ln\sum_v e^{\ell_v} - \ell_y", loss_of_a_token, _predicts
    ),
)


# About ten minutes for somebody with a pocket calculator; the other kinds are spare.
TEN_MINUTES = (
    "Cut into heads",
    "A scaled score",
    "Softmax of a row",
    "Mask a key",
    "A weighted sum",
)


def kinds_of(source: ExerciseSource) -> tuple[ExerciseKind, ...]:
    """The kinds that this run has numbers for."""
    return tuple(kind for kind in KINDS if kind.needs(source))
