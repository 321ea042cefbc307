"""Which experts read each token of a feed-forward, as its router chose them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.trace.arrays import Array, read_only


@dataclass(frozen=True, eq=False)
class ExpertsRecord:
    """The router of one feed-forward (Shazeer et al. 2017). Experts count from 0."""

    name: str  # decoder.3.feed_forward
    logits: Array  # (token, expert)
    weights: Array  # (token, k): what the outputs of the chosen experts are multiplied by
    chosen: NDArray[np.int64]  # (token, k)

    def __repr__(self) -> str:
        tokens, experts = self.logits.shape
        return f"<ExpertsRecord {self.name}: {tokens} tokens × {experts} experts>"

    @property
    def shares(self) -> Array:
        """(token, expert): the weight of each expert; 0 for one that does not read the token."""
        shares = np.zeros_like(self.logits)
        np.put_along_axis(shares, self.chosen, self.weights, -1)
        return read_only(shares)
