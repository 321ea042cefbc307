"""Questions on the vectors of tokens: their ids, their positions, and what sub-layers add to them. Pure."""

from itertools import pairwise

import numpy as np

from model.analysis.stream.stream import summed
from model.trace.unproven import UnprovenError
from viz.notation.names import listed, state_names
from viz.notation.numbers import counted
from viz.questions.question import OPTIONS, Question, Scene, token_name

_AHEAD = 1.1  # times the length of the next longest: below, nobody can tell them apart in a picture


def same_word_twice(scene: Scene, number: int) -> Question | None:
    """Does a word that comes back have the same id?"""
    tokens = scene.trace.tokens
    words = [token.text.strip() for token in tokens]
    pairs = [
        (words.index(word), at)
        for at, word in enumerate(words)
        if word.isalpha() and words.index(word) < at
    ]
    if number >= len(pairs):
        return None
    first, again = pairs[-1 - number]
    before, after = tokens[first], tokens[again]
    is_same = before.id == after.id
    names = token_name(before, first), token_name(after, again)
    return Question(
        f"“{words[again]}” stands at positions {first} and {again}. Have both tokens the same id?",
        ("Yes, one id", "No, two ids"),
        0 if is_same else 1,
        f"{names[0]} has the id {before.id}, {names[1]} the id {after.id}.",
        "The same piece of text is the same token, wherever it stands."
        if is_same
        else "The space before a word is part of its token, so the two are different pieces of text.",
    )


def same_token_elsewhere(scene: Scene, number: int) -> Question | None:
    """Have two equal tokens the same vector once positions are added?"""
    try:
        whole = summed(scene.trace)
    except (ValueError, UnprovenError):
        return None
    if "positions" not in whole.parts:
        return None
    tokens = scene.trace.tokens
    ids = [token.id for token in tokens]
    pairs = [(ids.index(id_), at) for at, id_ in enumerate(ids) if ids.index(id_) < at]
    if number >= len(pairs):
        return None
    first, again = pairs[number]
    words, total = whole.parts["tokens"], whole.total
    apart = [float(np.linalg.norm(rows[again] - rows[first])) for rows in (words, total)]
    if apart[0] > 0 or apart[1] == 0:
        return None
    names = token_name(tokens[first], first), token_name(tokens[again], again)
    return Question(
        f"{names[0]} and {names[1]} are the same token. What of them differs once positions are added?",
        ("Nothing", "Token vector and sum", "The sum alone"),
        2,
        f"Their token vectors are {apart[0]:.1f} apart, their sums {apart[1]:.3f}.",
        "Both take the same row of the table of tokens, and each the row of its own position.",
    )


def longest_contribution(scene: Scene, number: int) -> Question | None:
    """Which sub-layer adds the longest vector to the stream, on average over the tokens?"""
    trace = scene.trace
    stack = trace.stacks[0]
    if number or "stream" in trace.unproven:
        return None
    states = trace.residual[stack]
    if any(np.array_equal(norm.output, states[1]) for norm in trace.norms):
        return None  # a norm follows each sum: the difference of two states is not what was added
    names = state_names(trace, stack)[1:]
    added = [
        float(np.linalg.norm(after - before, axis=-1).mean()) for before, after in pairwise(states)
    ]
    ranked = sorted(range(len(added)), key=lambda at: -added[at])
    if len(ranked) < 2 or added[ranked[0]] < _AHEAD * added[ranked[1]]:
        return None
    offered = sorted(ranked[:OPTIONS])
    given = [f"{names[at]} {added[at]:.2f}" for at in offered]
    tokens = counted(len(states[0]), "token")
    return Question(
        f"Which sub-layer adds the longest vector to the stream, on average over {tokens}?",
        tuple(names[at] for at in offered),
        offered.index(ranked[0]),
        f"Mean lengths: {listed(given)}.",
        "A long vector moves the stream far. What it does to the answer is another question: the "
        "directions count, too.",
    )
