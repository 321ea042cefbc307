"""What a model must beat: predictions without context, and with one token of context."""

import numpy as np

from model.trace.arrays import Wide
from model.training.recipe import Ids


class Unigram:
    """The frequency of each token; one is added to every count."""

    def __init__(self, ids: Ids, *, vocabulary: int) -> None:
        counts = np.bincount(ids, minlength=vocabulary) + 1.0
        self._logs = np.log(counts / counts.sum())

    def loss(self, rows: Ids) -> float:
        """Mean of -ln p over every token of (row, token) but each row's first."""
        return float(-self._logs[rows[:, 1:]].mean())


class Bigram:
    """Interpolated Kneser–Ney: the strongest of the usual smoothings (Chen and Goodman 1999).

    p(w | v) = max(c(v, w) - D, 0) / c(v) + D · kinds(v) / c(v) · p(w), where p(w) counts in how
    many different contexts w occurs, and D = n1 / (n1 + 2 · n2) from pairs seen once and twice.
    """

    def __init__(self, ids: Ids, *, vocabulary: int) -> None:
        self._vocabulary = vocabulary
        self._pairs, self._counts = np.unique(self._keys(ids[:-1], ids[1:]), return_counts=True)
        before, after = np.divmod(self._pairs, vocabulary)
        once, twice = (int((self._counts == times).sum()) for times in (1, 2))
        self._discount = once / max(1, once + 2 * twice)
        self._totals = np.bincount(before, weights=self._counts, minlength=vocabulary)
        self._kinds = np.bincount(before, minlength=vocabulary)
        contexts = np.bincount(after, minlength=vocabulary) + 1.0
        self._general: Wide = contexts / contexts.sum()

    def loss(self, rows: Ids) -> float:
        """Mean of -ln p over every token of (row, token) but each row's first."""
        return float(-np.log(self.probabilities(rows[:, :-1], rows[:, 1:])).mean())

    def probabilities(self, before: Ids, after: Ids) -> Wide:
        """p(after | before), element by element. A context never seen gives p(after)."""
        keys = self._keys(before, after)
        places = np.minimum(np.searchsorted(self._pairs, keys), len(self._pairs) - 1)
        counts = np.where(self._pairs[places] == keys, self._counts[places], 0)
        totals = self._totals[before]
        seen = np.maximum(counts - self._discount, 0) / np.maximum(totals, 1)
        left = self._discount * self._kinds[before] / np.maximum(totals, 1)
        return seen + np.where(totals > 0, left, 1.0) * self._general[after]

    def _keys(self, before: Ids, after: Ids) -> Ids:
        return before.astype(np.int64) * self._vocabulary + after
