"""An attention sub-layer some queries at a time, and a large matrix made small enough to draw: neighbouring
cells share one, which has their largest number."""

import math
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from model.trace.arrays import Array, BoolArray, read_only
from model.trace.records import Attention

TOGETHER = 512  # queries whose weights are computed at once


def of_queries(attention: Attention, rows: slice) -> Attention:
    """The sub-layer for some of its queries, with all keys."""
    mask, bias = attention.own_mask, attention.bias
    first, end, _ = rows.indices(attention.vectors[0].shape[1])
    if attention.look_ahead:
        keys = np.arange(attention.vectors[1].shape[1])
        mask = read_only(keys <= np.arange(first, end)[:, None])
    elif mask is not None:
        mask = mask[..., rows, :]
    changed = {
        "output": attention.output[:, rows],
        "vectors": (attention.query[:, rows], *attention.vectors[1:]),
        "own_mask": mask,
        "look_ahead": False,
        "steps": {name: step[:, rows] for name, step in attention.steps.items()},
        "weights_set": tuple(
            (head, query - first, key, weight)
            for head, query, key, weight in attention.weights_set
            if first <= query < end
        ),
        "bias": bias if bias is None or bias.shape[1] == 1 else bias[:, rows],
    }
    # A record that lies on a cluster asks for what it lacks; one of some queries has it all.
    whole = {one.name: getattr(attention, one.name) for one in fields(Attention)}
    return Attention(**whole | changed)


def of_query(attention: Attention, query: int) -> Attention:
    """The sub-layer for one of its queries."""
    return attention.at_query(query) or of_queries(attention, slice(query, query + 1))


def by_queries(attention: Attention, step: int) -> Iterator[Attention]:
    """The sub-layer in parts of so many queries, from the first on."""
    count = attention.vectors[0].shape[1]
    return (of_queries(attention, slice(at, at + step)) for at in range(0, count, step))


# Cells of one picture: 512 × 512, about the pixels that a picture has, and 1 MB in single precision.
CELLS = 2**18
CellBlock = tuple[int, int]  # rows and columns that share a cell
V = TypeVar("V", np.float32, np.float64, np.bool_)


def block_of(rows: int, columns: int) -> CellBlock:
    """How many rows and columns share a cell where at most `CELLS` are drawn; (1, 1) where none need to."""
    if rows * columns <= CELLS:
        return 1, 1
    side = math.isqrt(CELLS)
    return -(-rows // max(side, CELLS // columns)), -(-columns // max(side, CELLS // rows))


def largest_of_blocks(values: NDArray[V], block: CellBlock) -> NDArray[V]:
    """(row, column) to (block of rows, block of columns): of each block the number of largest size, NaN only
    where all are NaN; of truth values whether any is true. The last blocks may be smaller."""
    if block == (1, 1):
        return values
    if values.dtype == np.bool_:
        return _reduced(np.maximum, values, block)
    high, low = (_reduced(of, values, block) for of in (np.fmax, np.fmin))
    return np.where(high >= np.negative(low), high, low)


def in_blocks(
    attention: Attention, block: CellBlock, of: Callable[[Attention], NDArray[V]]
) -> NDArray[V]:
    """`largest_of_blocks` of a matrix (query, key) of a sub-layer, which is computed some queries at a time.

    of: the matrix of a sub-layer with some of the queries.
    """
    if block == (1, 1):
        return of(attention)
    parts = by_queries(attention, rows_together(block))
    return np.concatenate([largest_of_blocks(of(part), block) for part in parts])


def rows_together(block: CellBlock) -> int:
    """How many queries are computed at once: whole blocks of them."""
    return -(-TOGETHER // block[0]) * block[0]


def shown_weights(
    attention: Attention, head: int, block: CellBlock
) -> tuple[Array, BoolArray | None]:
    """(row, column): the weights of a head in blocks, and where a block is masked as a whole; None without a
    mask."""
    weights = in_blocks(attention, block, lambda part: part.weights(head))
    if not attention.look_ahead and attention.own_mask is None:
        return weights, None
    return weights, ~in_blocks(attention, block, lambda part: _allowed(part, head))


def _allowed(attention: Attention, head: int) -> BoolArray:
    mask = attention.mask_of(head)
    return np.ones(attention.sizes[1:], np.bool_) if mask is None else mask


def _reduced(of: np.ufunc, values: NDArray[V], block: CellBlock) -> NDArray[V]:
    rows, columns = (
        np.arange(0, size, step) for size, step in zip(values.shape, block, strict=True)
    )
    reduced: NDArray[V] = of.reduceat(of.reduceat(values, rows, 0), columns, 1)
    return reduced
