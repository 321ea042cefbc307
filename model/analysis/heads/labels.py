"""What a head may be called on a text: "previous token", "induction", …

A high mean can come from one row, or from a key that every row looks at. So a label needs several
rows, most of them clear, and much less weight on the same keys from the other rows.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.trace.arrays import Array, BoolArray, Wide
from model.trace.records import Attention

SEVERAL = 3  # clear rows that a label needs
CLEAR = 0.5  # of a row's weight: more than on all its other keys together
TIMES = 2  # how much more weight than the same keys get from the other rows


@dataclass(frozen=True)
class Evidence:
    """What the rows of one head say for one label."""

    rows: int  # that have such a cell, and other keys to choose from
    clear: int  # those of them with more than half of their weight there
    weight: float  # mean weight of these rows there; 0 without rows
    elsewhere: float | None  # mean weight on the same keys from the other rows; None without any
    column: bool = False  # whether the label is about all rows, so that there are no others

    @property
    def holds(self) -> bool:
        """Whether the head may be called so on this text."""
        is_clear = self.clear >= SEVERAL and 2 * self.clear > self.rows
        return is_clear and (self.column or self.stands_out)

    @property
    def stands_out(self) -> bool:
        """Whether the other rows give the same keys much less weight."""
        return self.elsewhere is not None and self.weight > TIMES * self.elsewhere


@dataclass(frozen=True, eq=False)
class Places:
    """The cells that a label is about, under one mask."""

    length: int  # keys
    queries: NDArray[np.intp]  # (cell,)
    keys: NDArray[np.intp]  # (cell,)
    chooses: BoolArray  # (query,): rows that may look at a key beside these cells
    others: Wide  # (key,): how many other such rows may look at it
    column: bool

    def evidence(self, weights: Array) -> Evidence:
        """What the weights (query, key) of one head show."""
        rows = np.unique(self.queries)
        if not rows.size:
            return Evidence(0, 0, 0.0, None, self.column)
        here = weights[self.queries, self.keys].astype(np.float64)
        shares = np.bincount(self.queries, here, len(weights))[rows]
        every = weights[self.chooses].sum(0, dtype=np.float64)
        left = every - np.bincount(self.keys, here, self.length)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.where(self.others > 0, left / self.others, np.nan)
        compared = np.bincount(self.queries, mean[self.keys], len(weights))[rows]
        known = compared[~np.isnan(compared)]
        return Evidence(
            len(rows),
            int((shares > CLEAR).sum()),
            float(shares.mean()),
            float(known.mean()) if known.size else None,
            self.column,
        )


def places(cells: BoolArray, allowed: BoolArray, *, column: bool = False) -> Places:
    """The cells (query, key) of a label in rows that may look elsewhere too. allowed: True where a
    query may look. column: as in `Evidence`."""
    cells = cells & allowed
    chooses: BoolArray = np.any(allowed & ~cells, axis=-1)
    queries, keys = np.nonzero(cells & chooses[:, None])
    others = (allowed & ~cells)[chooses].sum(0).astype(np.float64)
    return Places(cells.shape[1], queries, keys, chooses, others, column)


def allowed_cells(attention: Attention, head: int) -> BoolArray:
    """(query, key): where a head may look."""
    mask = attention.mask_of(head)
    shape = attention.sizes[1:]
    return np.ones(shape, dtype=bool) if mask is None else mask


def goes_on_with_its_text(attention: Attention, *, translates: bool) -> bool:
    """Whether a sub-layer reads the text that its model continues, and no later token. Only there can a
    head copy forward what followed a token. translates: whether the decoder writes from another text.
    """
    mask = attention.mask
    causal = attention.kind == "causal" and mask is not None and not np.triu(mask, 1).any()
    return causal and not translates
