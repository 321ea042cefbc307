"""One head's weights where there is little room: numbers only where they fit."""

from collections.abc import Sequence

import plotly.graph_objects as go

from model.trace.records import Attention
from viz.figures.heatmap import NUMBERED, Axis, heatmap

FITTING = 7  # columns whose numbers fit into a narrow picture


def narrow_weights(
    attention: Attention, head: int, *, queries: Sequence[str], keys: Sequence[str]
) -> go.Figure:
    """One head's weights: row = query, column = key, rows sum to 1, the masked future grey."""
    mask = attention.mask
    crowded = FITTING < len(keys) <= NUMBERED  # where a wide picture would have numbers
    return heatmap(
        attention.weights(head),
        rows=Axis("query", queries),
        columns=Axis("key", keys),
        quantity="weight",
        blocked=None if mask is None else ~mask,
        words=[[""] * len(keys)] * len(queries) if crowded else None,
    )
