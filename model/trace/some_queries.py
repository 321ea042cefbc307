"""An attention sub-layer some queries at a time: all rows of a long text at once take much memory."""

from collections.abc import Iterator
from dataclasses import fields

import numpy as np

from model.trace.arrays import read_only
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
