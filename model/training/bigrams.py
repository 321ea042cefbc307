"""Sequences whose rule must be found in the sequence itself. They make induction heads form."""

import numpy as np
from numpy.typing import NDArray

from model.training.recipe import IGNORED, Ids, Random


def in_context_bigrams(
    random: Random, symbols: Ids, *, count: int, length: int, faithful: float = 0.75
) -> tuple[Ids, Ids]:
    """Inputs and targets, both (count, length): each row has 6–24 symbols and its own successor map.

    The next symbol is the current one's successor with probability `faithful`, else a random one of the
    row. A target is scored where its pair stood in the row before.
    """
    sequences = np.stack(
        [_one_sequence(random, symbols, length + 1, faithful) for _ in range(count)]
    )
    return sequences[:, :-1], np.where(shown_before(sequences), sequences[:, 1:], IGNORED)


def _one_sequence(random: Random, symbols: Ids, length: int, faithful: float) -> Ids:
    chosen = random.choice(symbols, random.integers(6, min(24, len(symbols)) + 1), replace=False)
    size = len(chosen)
    successors = random.permutation(size)
    strays, stray = random.integers(size, size=length), random.random(length) >= faithful
    places = np.empty(length, dtype=np.int64)
    places[0] = strays[0]
    for at in range(1, length):
        places[at] = strays[at] if stray[at] else successors[places[at - 1]]
    return chosen[places]


def shown_before(sequences: Ids) -> NDArray[np.bool_]:
    """(count, length): whether the pair (this symbol, next symbol) stands earlier in the row."""
    this, following = sequences[:, :-1], sequences[:, 1:]
    same = (this[:, :, None] == this[:, None]) & (following[:, :, None] == following[:, None])
    return np.tril(same, -1).any(-1)


def repeated_lists(random: Random, symbols: Ids, *, count: int, length: int) -> tuple[Ids, Ids]:
    """Inputs and targets, both (count, length): a list of 4 to length / 2 symbols, repeated. Scored from the
    second time on."""
    rows, targets = [], []
    for _ in range(count):
        period = int(random.integers(4, max(5, length // 2)))
        listed = random.choice(symbols, period, replace=period > len(symbols))
        row = np.resize(listed, length + 1)
        rows.append(row[:-1])
        targets.append(np.where(np.arange(length) >= period, row[1:], IGNORED))
    return np.stack(rows), np.stack(targets)
