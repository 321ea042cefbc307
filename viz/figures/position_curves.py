"""Single dimensions of a table of positions, as curves over the position."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.figures.legend import ABOVE

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
# Okabe and Ito's palette without the colours that stand for query, key and value.
COLOURS = ("#CC79A7", "#56B4E9", "#E69F00", "#8C8C94", "#8E6BBF", "#B2A000")


def position_curves(
    table: NDArray[np.floating], columns: Sequence[int], *, column_name: str, value_name: str
) -> go.Figure:
    """table (position, column): one curve for each of the chosen columns."""
    figure = go.Figure()
    for number, column in enumerate(columns):
        figure.add_trace(
            go.Scatter(
                y=table[:, column],
                name=f"{column_name} {column}",
                mode="lines+markers" if len(table) <= 32 else "lines",
                marker={"size": 4},
                line={
                    "color": COLOURS[number % len(COLOURS)],
                    "dash": DASHES[number % len(DASHES)],
                    "width": 2,
                },
                hovertemplate=f"{column_name} {column}, position %{{x}}<br>%{{y:.4f}}"
                "<extra></extra>",
            )
        )
    figure.update_xaxes(title={"text": "position"}, rangemode="tozero")
    figure.update_yaxes(title={"text": value_name})
    figure.update_layout(
        height=430,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        showlegend=True,
        legend=ABOVE,
    )
    return figure
