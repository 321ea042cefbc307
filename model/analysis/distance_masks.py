"""What a window, chunks or ALiBi would do to the weights of one head, from its recorded scores."""

from dataclasses import dataclass

import numpy as np

from model.analysis.heads.labels import allowed_cells
from model.trace.arrays import Array, BoolArray, Wide, read_only
from model.trace.records import Attention, probabilities


@dataclass(frozen=True, eq=False)
class Preview:
    """A head's weights under one more mask or bias, (query, key) each."""

    allowed: BoolArray  # where it may look then
    added: Array  # to its scores
    weights: Array
    lost: Wide  # (query,): its own weight on keys where it may look no longer


def windowed(attention: Attention, head: int, width: int) -> Preview:
    """Each query reads at most so many keys, itself included."""
    from model.nn.masks import window_mask  # imports torch: pages are drawn first

    queries, keys = allowed_cells(attention, head).shape
    near = window_mask(queries, keys, width, causal=attention.kind == "causal").numpy()
    return _preview(attention, head, near, np.zeros((queries, keys), np.float32))


def chunked(attention: Attention, head: int, width: int) -> Preview:
    """The text is cut into chunks of so many tokens, and each query reads its own."""
    queries, keys = (np.arange(count) // width for count in allowed_cells(attention, head).shape)
    added = np.zeros((len(queries), len(keys)), np.float32)
    return _preview(attention, head, queries[:, None] == keys, added)


def alibi(attention: Attention, head: int, slope: float) -> Preview:
    """Each score is lowered by slope · distance (Press et al. 2022)."""
    queries, keys = map(np.arange, allowed_cells(attention, head).shape)
    apart = np.abs(queries[:, None] - keys)
    return _preview(attention, head, np.ones(apart.shape, bool), np.float32(-slope) * apart)


def slopes(heads: int) -> list[float]:
    """ALiBi's slope of each of so many heads."""
    from model.nn.biases import alibi_slopes  # imports torch: pages are drawn first

    return alibi_slopes(heads)


def _preview(attention: Attention, head: int, allowed: BoolArray, added: Array) -> Preview:
    own = allowed_cells(attention, head)
    cut, allowed = own & ~allowed, allowed & own
    cells = [cell[1:] for cell in attention.weights_set if cell[0] == head and allowed[cell[1:3]]]
    scores = np.where(allowed, attention.biased(head) + added, np.float32(attention.mask_value))
    weights = probabilities(scores, attention.sink_of(head), cells)[:, : allowed.shape[1]]
    lost = np.where(cut, attention.weights(head), 0).sum(-1, dtype=np.float64)
    return Preview(allowed, read_only(added), read_only(weights), lost)
