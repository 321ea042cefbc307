"""Two sentences of the same tokens in another order: does a model tell them apart?

Without positions and mask, attention is permutation-equivariant: f(PX) = P f(X). Each token then gets
the same vector wherever it stands.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from model.trace.arrays import Array, read_only
from model.trace.records import Token
from model.trace.trace import Trace

LISTED = 6  # tokens named in a refusal


@dataclass(frozen=True, eq=False)
class Reordered:
    """The last state of each token in two sentences."""

    places: tuple[tuple[int, int], ...]  # of each token in the first, in the second
    first: Array  # (token, d_model), in the order of the first sentence
    second: Array  # (token, d_model): the same tokens of the second sentence

    @property
    def differences(self) -> Array:
        """(token,): largest |first - second| over the dimensions."""
        return read_only(np.abs(self.first - self.second).max(-1))

    @property
    def largest(self) -> float:
        return float(self.differences.max())


def reordered(one: Trace, other: Trace) -> Reordered:
    """Two runs of one model, token beside token. Raises ValueError as `same_tokens` does."""
    places = same_tokens(one.tokens, other.tokens)
    first, second = one.residual[one.source][-1], other.residual[other.source][-1]
    return Reordered(places, first, read_only(second[[there for _, there in places]]))


def same_tokens(one: Sequence[Token], other: Sequence[Token]) -> tuple[tuple[int, int], ...]:
    """The place of each token of one sentence and its place in the other; equal tokens are paired in
    order. Raises ValueError where the sentences hold different tokens."""
    for tokens, against, name in ((one, other, "first"), (other, one, "second")):
        more = Counter(token.id for token in tokens) - Counter(token.id for token in against)
        if more:
            texts = dict.fromkeys(token.text for token in tokens if token.id in more)
            listed = ", ".join(f"“{text}”" for text in list(texts)[:LISTED])
            raise ValueError(
                f"Both sentences must have the same tokens. Only in the {name}: {listed}."
            )
    waiting = defaultdict(list)
    for place in reversed(range(len(other))):
        waiting[other[place].id].append(place)
    return tuple((place, waiting[token.id].pop()) for place, token in enumerate(one))
