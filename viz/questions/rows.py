"""Questions on one row of weights and on what the heads of a family look at. Pure."""

from collections.abc import Callable
from math import exp

from model.head_families import family_of, head_label
from model.heads import at_offset, prefix_matching
from model.trace import Array, Attention
from viz.questions.question import CLEAR, Question, Scene, listed, token_name

OPTIONS = 4
_BUSY, _IDLE = 0.5, 0.2  # mean weights: the head that is asked for, and every other option


def row_of(attention: Attention, number: int) -> int:
    """The row that a number picks: the last one first, then upwards."""
    rows = attention.query.shape[1]
    return rows - 1 - number % rows


def open_keys(attention: Attention, query: int, head: int) -> list[int]:
    """The keys that a query may look at."""
    keys = attention.key.shape[1]
    if attention.mask is None:
        return list(range(keys))
    mask = attention.mask if attention.mask.ndim == 2 else attention.mask[head]
    return [key for key in range(keys) if mask[query, key]]


def largest_weight(scene: Scene, number: int) -> Question | None:
    """Which key gets the largest weight of a row?"""
    attention, trace = scene.attention, scene.trace
    query = row_of(attention, number)
    keys = open_keys(attention, query, scene.head)
    row = attention.weights(scene.head)[query]
    ranked = sorted(keys, key=lambda key: -row[key])
    if len(ranked) < 3 or row[ranked[0]] - row[ranked[1]] < CLEAR:
        return None
    best, next_best = ranked[:2]
    offered = _offered(ranked, likely=(query, query - 1, 0))
    tokens = trace.keys_of(attention)
    names = [token_name(tokens[key], key) for key in offered]
    scaled = attention.scaled(scene.head)[query]
    apart = float(scaled[best] - scaled[next_best])
    looking = token_name(trace.queries_of(attention)[query], query)
    return Question(
        f"In head {scene.head_name}, which token gets the largest weight in the row of {looking}?",
        tuple(names),
        offered.index(best),
        f"Weights: {_amounts(names, [float(row[key]) for key in offered])}. "
        "All weights of the row sum to 1.",
        f"The query of {looking} fits its key best: a scaled score of {scaled[best]:.2f}, the next "
        f"largest is {scaled[next_best]:.2f}. The softmax makes of this difference a ratio: "
        f"{row[best]:.3f} is e^{apart:.2f} = {exp(apart):.3g} times {row[next_best]:.3g}.",
    )


def _offered(ranked: list[int], *, likely: tuple[int, ...]) -> list[int]:
    """The best key and three others, in the order of the sentence: the next best, then those that
    a reader would think of."""
    chosen = ranked[:2]
    for key in (*likely, *ranked):
        if key in ranked and key not in chosen and len(chosen) < OPTIONS:
            chosen.append(key)
    return sorted(chosen)


def allowed_keys(scene: Scene, number: int) -> Question | None:
    """How many tokens may a token look at under the causal mask?"""
    attention, trace = scene.attention, scene.trace
    if attention.kind != "causal":
        return None
    query = row_of(attention, number + 1)
    total, allowed = attention.key.shape[1], len(open_keys(attention, query, scene.head))
    if not 2 <= allowed < total or allowed != query + 1:  # a sliding window hides more
        return None
    row = attention.weights(scene.head)[query]
    counts = sorted({allowed - 1, allowed, total})
    looking = token_name(trace.queries_of(attention)[query], query)
    return Question(
        f"The sentence has {total} tokens. How many of them may {looking} look at?",
        tuple(str(count) for count in counts),
        counts.index(allowed),
        f"{allowed}: itself and the {query} before it. In {scene.head_name} its weights on these sum "
        f"to {row[:allowed].sum():.4f}, and on the {total - allowed} after it to "
        f"{row[allowed:].sum():.4f}.",
        "Positions count from 0, and a token may look at itself. The causal mask sets every score "
        "above the diagonal to minus infinity, and e to that power is 0.",
    )


def copying_head(scene: Scene, number: int) -> Question | None:
    """Which head looks at what followed the same word the time before?"""
    family = family_of(scene.attention)
    if family.cross:
        return None
    words = [token.text.strip() for token in family.keys(scene.trace)]
    numbers = [words.index(word) for word in words]  # “Tom” and “·Tom” are one word
    return _which_head(
        scene,
        number,
        lambda weights: prefix_matching(weights, numbers),
        "Which of these heads copies? Where a word comes back, it looks at what followed it before.",
        "mean weight on what followed the same word before, with or without its space",
        "Such an induction head needs another head, in an earlier layer, that tells each token which "
        "one stood before it.",
    )


def previous_head(scene: Scene, number: int) -> Question | None:
    """Which head looks at the token just before?"""
    if family_of(scene.attention).cross:
        return None
    return _which_head(
        scene,
        number,
        lambda weights: at_offset(weights, -1),
        "Which of these heads looks at the token just before, at nearly every token?",
        "mean weight on the token before",
        "In its tile that is a line just below the diagonal. Heads of later layers use what it writes.",
    )


def _which_head(
    scene: Scene,
    number: int,
    statistic: Callable[[Array], float],
    prompt: str,
    unit: str,
    why: str,
) -> Question | None:
    """The head that has most of a statistic, among three that have hardly any of it."""
    family, trace = family_of(scene.attention), scene.trace
    try:
        values = {
            (attention.name, head): statistic(attention.weights(head))
            for attention in family.members(trace)
            for head in range(attention.heads)
        }
    except ValueError:  # the text gives it no rows
        return None
    ranked = sorted(values.items(), key=lambda one: -one[1])
    best = ranked[0]
    idle = [one for one in ranked if one[1] <= _IDLE]
    if best[1] < _BUSY or len(idle) < OPTIONS - 1:
        return None
    step = len(idle) // (OPTIONS - 1)
    offered = sorted([best, *(idle[(place * step + number) % len(idle)] for place in range(3))])
    names = [head_label(head) for head, _ in offered]
    alike = [head_label(head) for head, value in ranked[1:] if best[1] - value < CLEAR]
    also = f" Nearly as much: {listed(alike)}." if alike else ""
    return Question(
        prompt,
        tuple(names),
        offered.index(best),
        f"{unit[0].upper()}{unit[1:]}: {_amounts(names, [value for _, value in offered])}.{also}",
        why,
    )


def _amounts(names: list[str], amounts: list[float] | Array) -> str:
    return listed([f"{name} {amount:.3f}" for name, amount in zip(names, amounts, strict=True)])
