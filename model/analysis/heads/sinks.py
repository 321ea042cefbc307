"""How much heads attend to one token, often the first, and what that weight carries.

A row of weights sums to 1, so a head that finds nothing to read still puts its weight somewhere. A token
that takes much of it and whose value is short is an attention sink (Xiao et al. 2023). Some models
learn a sink for each head instead, a column of the softmax that reads nothing.

Axes: H heads of a family.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from model.analysis.heads.labels import allowed_cells
from model.analysis.heads.statistics import Family
from model.nn.intervention import Intervention
from model.nn.places import Head
from model.system.remote import asked
from model.trace.arrays import BoolArray, Wide
from model.trace.blocks import TOGETHER, by_queries
from model.trace.collect import numbers_of
from model.trace.records import Attention
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model


@dataclass(frozen=True, eq=False)
class TokenAsKey:
    """One token as a key of every head of a family, (H,) each.

    Means are over the rows that count: those of other tokens that may attend to it. They are NaN for a
    head without such a row, and those of edges where W_O is not there.
    """

    heads: tuple[Head, ...]
    position: int
    rows: Wide  # how many count
    weight: Wide  # mean weight on it
    even: Wide  # the weight that it would get if each row were spread evenly over its keys
    value: Wide  # length of its value
    other_values: Wide  # mean length of the other tokens' values
    edge: (
        Wide  # mean length of weight · value · W_O of the edge to it, before any norm that follows
    )
    edges: Wide  # mean sum of these lengths over all edges of a row
    learned: Wide  # mean weight that the head's learned sink takes; 0 where it has none

    @property
    def value_ratio(self) -> Wide:
        """The length of its value over the mean of the others."""
        return _shares(self.value, self.other_values)

    @property
    def carried(self) -> Wide:
        """Its share of the lengths of all edges of these rows."""
        return _shares(self.edge, self.edges)


@asked
def token_as_key(model: "Model", trace: Trace, family: Family, position: int = 0) -> TokenAsKey:
    """What one token gets of each head of a family, and what that carries.

    Args:
        position: of the token, from 0.

    Raises ValueError for a token that no other one may attend to, and for the only one of its text.
    """
    columns = [
        _of_head(model, attention, head, position)
        for attention in family.members(trace)
        for head in range(attention.heads)
    ]
    found = np.array(columns, np.float64).T
    if not found[0].any():
        raise ValueError(f"No other token may attend to the token at position {position}.")
    if len(family.keys(trace)) == 1:
        raise ValueError("There is no other token to attend to.")
    return TokenAsKey(family.heads(trace), position, *found)


def _of_head(
    model: "Model", attention: Attention, head: int, position: int
) -> tuple[float | np.floating, ...]:
    """The numbers of one head, in the order of the fields."""
    value = attention.value[head].astype(np.float64)
    written = _lengths_written(model, attention, head, value) * (head not in attention.ablated)
    parts = [_by_row(some, head, position, written) for some in by_queries(attention, TOGETHER)]
    column, keys, on_it, edge, edges, learned = map(np.concatenate, zip(*parts, strict=True))
    rows = _counted(attention, column, position)
    lengths = np.linalg.norm(value, axis=-1)
    others = np.delete(lengths, position)
    known = rows.sum(), lengths[position], others.mean() if len(others) else 0.0
    if not rows.any():
        return known[0], np.nan, np.nan, *known[1:], np.nan, np.nan, np.nan
    weight, even = on_it[rows].mean(), (1 / keys[rows]).mean()
    carried = edge[rows].mean(), edges[rows].mean()
    return known[0], weight, even, *known[1:], *carried, learned[rows].mean()


def _by_row(
    attention: Attention, head: int, position: int, written: Wide
) -> tuple[BoolArray, NDArray[np.intp], Wide, Wide, Wide, Wide]:
    """(query,) each: whether it may attend to the token, how many keys it may attend to, its weight on the
    token, the length of its edge to it and the sum of all edges' lengths, both after dropout, and what the
    sink takes."""
    weights, allowed = attention.weights(head), allowed_cells(attention, head)
    dropped = attention.dropped(head)
    return (
        allowed[:, position],
        allowed.sum(-1),
        weights[:, position].astype(np.float64),
        dropped[:, position].astype(np.float64) * written[position],
        (dropped @ written.astype(np.float32)).astype(np.float64),
        attention.sink_weights(head).astype(np.float64),
    )


def _counted(attention: Attention, column: BoolArray, position: int) -> BoolArray:
    """(query,): True for the other tokens that may attend to one. column: all that may."""
    rows = column.copy()
    if attention.kind != "cross" and position < len(rows):
        rows[position] = False
    return rows


def _lengths_written(model: "Model", attention: Attention, head: int, value: Wide) -> Wide:
    """(key,): the length of each value through the head's rows of W_O; NaN where that is not there."""
    if "output" in model.unproven:
        return np.full(len(value), np.nan)
    written = value @ numbers_of(model.w_o(attention.name, head)).T
    lengths: Wide = np.linalg.norm(written, axis=-1)
    return lengths


def _shares(part: Wide, whole: Wide) -> Wide:
    """part / whole, NaN where the whole is 0."""
    return np.divide(part, whole, out=np.full_like(part, np.nan), where=whole > 0)


def hiding(trace: Trace, family: Family, position: int) -> Intervention:
    """The intervention in which no other token attends to one. A target token is hidden from the decoder's
    self-attention, any other from everything that reads it."""
    if family.stack == "encoder" or family.cross or trace.source == "decoder":
        return Intervention(hidden=frozenset({position}))
    queries = range(position + 1, len(trace.target_tokens))
    return Intervention(
        blocked=frozenset((query, position) for query in queries),
        only=frozenset(one.name for one in family.members(trace)),
    )


@asked
def moved_weight(before: Trace, after: Trace, family: Family, position: int) -> Wide:
    """(H, key): by how much each key's mean weight differs in the second run, over the rows that count for
    the hidden token in the first. NaN for a head without such a row.

    Args:
        before: the unchanged run.
        after: the run that hides a token.
        position: of that token, from 0.
    """
    pairs = zip(family.members(before), family.members(after), strict=True)
    return np.array(
        [
            _moved(ours, theirs, head, position)
            for ours, theirs in pairs
            for head in range(ours.heads)
        ]
    )


def _moved(ours: Attention, theirs: Attention, head: int, position: int) -> Wide:
    rows = _counted(ours, allowed_cells(ours, head)[:, position], position)
    if not rows.any():
        return np.full(ours.vectors[1].shape[1], np.nan)
    total = np.zeros(ours.vectors[1].shape[1])
    pairs = zip(by_queries(ours, TOGETHER), by_queries(theirs, TOGETHER), strict=True)
    for at, (before, after) in enumerate(pairs):
        counted = rows[at * TOGETHER : (at + 1) * TOGETHER]
        apart = after.weights(head)[counted] - before.weights(head)[counted]
        total += apart.sum(0, dtype=np.float64)
    return total / rows.sum()
