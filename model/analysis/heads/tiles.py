"""Each head's weights made small, so that all heads fit into one picture."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from model.analysis.heads.families import Family, Head
from model.trace.arrays import Array, Mask, read_only
from model.trace.trace import Trace

MOST = 32  # rows and columns of a tile


@dataclass(frozen=True, eq=False)
class Tiles:
    """The weights of every head of a family. A cell is the largest weight of a block of tokens."""

    layers: tuple[str, ...]  # attention names, from the first layer on
    weights: Array  # (layer, head, row, column), each 0 to 1
    blocked: Mask  # (layer, row, column): True where no token of the block may look
    block: tuple[int, int]  # queries and keys of one cell


def tiles(trace: Trace, family: Family, most: int = MOST) -> Tiles:
    """Every head of a family as a tile of at most `most` by `most` cells."""
    members = family.members(trace)
    lengths = len(family.queries(trace)), len(family.keys(trace))
    block = -(-lengths[0] // most), -(-lengths[1] // most)
    weights = [
        [largest_of_blocks(one.weights(head), block) for head in range(one.heads)]
        for one in members
    ]
    blocked = [np.zeros(lengths, dtype=bool) if one.mask is None else ~one.mask for one in members]
    closed = [~_any_of_blocks(~cells, block) for cells in blocked]
    return Tiles(
        tuple(one.name for one in members),
        read_only(np.array(weights)),
        read_only(np.stack(closed)),
        block,
    )


def chosen_tiles(found: Tiles, heads: Sequence[Head]) -> Tiles:
    """Some of the tiles side by side, as if one layer had these heads."""
    places = [(found.layers.index(layer), head) for layer, head in heads]
    return Tiles(
        (heads[0][0],),
        read_only(np.stack([found.weights[place] for place in places])[None]),
        read_only(np.all([found.blocked[layer] for layer, _ in places], axis=0)[None]),
        found.block,
    )


def largest_of_blocks(weights: Array, block: tuple[int, int]) -> Array:
    """(query, key) to (row, column): the largest weight of each block; the last may be smaller."""
    rows = np.arange(0, weights.shape[0], block[0])
    columns = np.arange(0, weights.shape[1], block[1])
    return np.maximum.reduceat(np.maximum.reduceat(weights, rows, 0), columns, 1)


def _any_of_blocks(cells: Mask, block: tuple[int, int]) -> Mask:
    return largest_of_blocks(cells.astype(np.float32), block) > 0
