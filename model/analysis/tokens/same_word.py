"""One token in two sentences: how similar its vectors are at each state of the stream."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from model.analysis.tokens.embeddings import cosines
from model.trace.arrays import Array, read_only
from model.trace.records import Token
from model.trace.trace import Trace


@dataclass(frozen=True, eq=False)
class Likeness:
    """Cosines of the token's own vector, then of each state of the stream."""

    word: Array  # (1 + state,): between the token in the one sentence and in the other
    others: Array | None  # (1 + state,): mean over the other sentence's other tokens, if any


def shared_tokens(one: Sequence[Token], other: Sequence[Token]) -> tuple[Token, ...]:
    """The typed tokens that occur in both sentences, each once, in the order of the first."""
    known = {token.id for token in other if not token.special}
    found = {token.id: token for token in one if not token.special and token.id in known}
    return tuple(found.values())


def places_of(tokens: Sequence[Token], id_: int) -> tuple[int, ...]:
    """Where a token stands in a sentence, counted from 0."""
    return tuple(place for place, token in enumerate(tokens) if token.id == id_)


def likeness(one: Trace, other: Trace, places: tuple[int, int]) -> Likeness:
    """How similar the tokens at a place of each text are. Both are runs of the same model."""
    here, there = places
    word, others = [], []
    for left, right in zip(_vectors(one), _vectors(other), strict=True):
        found = cosines(right, left[here])
        word.append(found[there])
        rest = np.delete(found, places_of(other.tokens, one.tokens[here].id))
        others.append(rest.mean() if rest.size else np.nan)
    mean = np.array(others)
    return Likeness(read_only(np.array(word)), None if np.isnan(mean).any() else read_only(mean))


def _vectors(trace: Trace) -> tuple[Array, ...]:
    """(token, d_model) each: the token vectors, then the states of the stack that read the text."""
    return (trace.embeddings, *trace.states[trace.source])
