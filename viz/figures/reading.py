"""One row of weights: which tokens the last one read."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.notation.labels import plotly_label, tick_positions
from viz.notation.theme import MASKED, WEIGHT

LABEL = 14  # characters


def reading(
    weights: NDArray[np.floating], tokens: Sequence[str], *, written: int = 0, height: int = 330
) -> go.Figure:
    """weights (key,) of one query as bars, one a token, from the first to the last.

    written: how many of the last tokens the model wrote itself; a dotted line stands before them.
    Raises ValueError if weights and tokens are not equally many.
    """
    if weights.shape != (len(tokens),):
        raise ValueError(f"{weights.shape} weights for {len(tokens)} tokens.")
    positions = list(range(len(tokens)))
    ticks = tick_positions(len(tokens))
    figure = go.Figure(
        go.Bar(
            x=positions,
            y=weights,
            marker={"color": WEIGHT},
            hovertext=[f"{place} {plotly_label(text, 24)}" for place, text in enumerate(tokens)],
            hovertemplate="key %{hovertext}<br>weight %{y:.4f}<extra></extra>",
        )
    )
    if 0 < written < len(tokens):
        figure.add_vline(
            len(tokens) - written - 0.5, line={"dash": "dot", "width": 1, "color": MASKED}
        )
    figure.update_xaxes(
        title={"text": "key: the token that is read"},
        tickvals=ticks,
        ticktext=[plotly_label(tokens[position], LABEL) for position in ticks],
        tickfont={"family": "monospace"},
        tickangle=-60,
        range=[-0.6, len(tokens) - 0.4],
        showgrid=False,
        zeroline=False,
    )
    figure.update_yaxes(title={"text": "weight"}, range=[0, 1], tickvals=[0, 0.5, 1])
    figure.update_layout(height=height, margin={"l": 8, "r": 8, "t": 8, "b": 8}, showlegend=False)
    return figure
