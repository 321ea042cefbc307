"""Each head's weights made small, so that all heads fit into one picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from model.analysis.heads.families import Family
from model.nn.places import Head
from model.system.elsewhere import asked
from model.trace.arrays import Array, Mask, read_only
from model.trace.records import Attention
from model.trace.some_queries import TOGETHER, by_queries
from model.trace.trace import Trace

MOST = 32  # rows and columns of a tile
V = TypeVar("V", np.float32, np.bool_)


@dataclass(frozen=True, eq=False)
class Tiles:
    """The weights of every head of a family. A cell is the largest weight of a block of tokens."""

    layers: tuple[str, ...]  # attention names, from the first layer on
    weights: Array  # (layer, head, row, column), each 0 to 1
    blocked: Mask  # (layer, row, column): True where no token of the block may look
    block: tuple[int, int]  # queries and keys of one cell


@asked
def tiles(trace: Trace, family: Family, most: int = MOST) -> Tiles:
    """Every head of a family as a tile of at most `most` by `most` cells."""
    members = family.members(trace)
    lengths = len(family.queries(trace)), len(family.keys(trace))
    block = -(-lengths[0] // most), -(-lengths[1] // most)
    weights = [[_largest(layer, head, block) for head in range(layer.heads)] for layer in members]
    allowed = [np.ones(lengths, bool) if one.mask is None else one.mask for one in members]
    return Tiles(
        tuple(one.name for one in members),
        read_only(np.array(weights)),
        read_only(np.stack([~largest_of_blocks(mask, block) for mask in allowed])),
        block,
    )


def _largest(attention: Attention, head: int, block: tuple[int, int]) -> Array:
    """`largest_of_blocks` of one head's weights, some queries at a time."""
    step = -(-TOGETHER // block[0]) * block[0]
    some = by_queries(attention, step)
    return np.concatenate([largest_of_blocks(part.weights(head), block) for part in some])


def chosen_tiles(found: Tiles, heads: Sequence[Head]) -> Tiles:
    """Some of the tiles side by side, as if they were one layer's."""
    places = [(found.layers.index(layer), head) for layer, head in heads]
    return Tiles(
        (heads[0][0],),
        read_only(np.stack([found.weights[place] for place in places])[None]),
        read_only(np.all([found.blocked[layer] for layer, _ in places], axis=0)[None]),
        found.block,
    )


def largest_of_blocks(weights: NDArray[V], block: tuple[int, int]) -> NDArray[V]:
    """(query, key) to (row, column): the largest of each block; the last blocks may be smaller."""
    rows = np.arange(0, weights.shape[0], block[0])
    columns = np.arange(0, weights.shape[1], block[1])
    return np.maximum.reduceat(np.maximum.reduceat(weights, rows, 0), columns, 1)
