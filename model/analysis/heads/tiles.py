"""Each head's weights made small, so that all heads fit into one picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from model.analysis.heads.families import Family
from model.nn.places import Head
from model.system.elsewhere import asked
from model.trace.arrays import Array, Mask, read_only
from model.trace.blocks import in_blocks
from model.trace.records import Attention
from model.trace.trace import Trace

MOST = 32  # rows and columns of a tile


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
    weights = [
        [
            in_blocks(layer, block, partial(Attention.weights, head=head))
            for head in range(layer.heads)
        ]
        for layer in members
    ]
    allowed = [in_blocks(layer, block, _allowed) for layer in members]
    return Tiles(
        tuple(one.name for one in members),
        read_only(np.array(weights)),
        read_only(~np.stack(allowed)),
        block,
    )


def _allowed(attention: Attention) -> Mask:
    """(query, key): where a query may look in any head."""
    mask = attention.mask
    if mask is None:
        return np.ones(attention.sizes[1:], np.bool_)
    of_any: Mask = mask if mask.ndim == 2 else np.any(mask, axis=0)
    return of_any


def chosen_tiles(found: Tiles, heads: Sequence[Head]) -> Tiles:
    """Some of the tiles side by side, as if they were one layer's."""
    places = [(found.layers.index(layer), head) for layer, head in heads]
    return Tiles(
        (heads[0][0],),
        read_only(np.stack([found.weights[place] for place in places])[None]),
        read_only(np.all([found.blocked[layer] for layer, _ in places], axis=0)[None]),
        found.block,
    )
