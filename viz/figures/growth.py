"""What grows with the square of the length, and what grows with the length: two lines that cross."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from model.analysis.cost.cost import Growth
from viz.figures.legend import ABOVE
from viz.notation.theme import MASKED, WEIGHT

LINEAR = MASKED
_POINTS = 60


@dataclass(frozen=True)
class Timed:
    """Measured seconds at some lengths."""

    name: str
    lengths: Sequence[int]
    seconds: Sequence[float]
    colour: str


def growth_lines(cost: Growth, *, length: int, unit: str) -> go.Figure:
    """Both axes are logarithmic: the square is the steeper line. A dotted line marks `length`, a
    cross the length from which on the square costs more."""
    far = max(4 * length, 4 * (cost.crossing or 1), 64)
    lengths = np.geomspace(1, far, _POINTS)
    figure = go.Figure()
    for name, values, colour in (
        ("pairs of tokens: grows with n²", cost.quadratic * lengths**2, WEIGHT),
        ("all else: grows with n", cost.linear * lengths, LINEAR),
    ):
        figure.add_trace(
            go.Scatter(
                x=lengths,
                y=values,
                name=name,
                mode="lines",
                line={"color": colour, "width": 3},
                hovertemplate=f"{name}<br>length %{{x:,.0f}}: %{{y:.3s}}<extra></extra>",
            )
        )
    if cost.crossing:
        figure.add_trace(
            go.Scatter(
                x=[cost.crossing],
                y=[cost.linear * cost.crossing],
                name=f"equal at {cost.crossing:,.0f} tokens",
                mode="markers",
                marker={"color": WEIGHT, "size": 12, "symbol": "x"},
                hovertemplate="equal at %{x:,.1f} tokens<extra></extra>",
            )
        )
    figure.add_vline(length, line={"dash": "dot", "color": MASKED})
    figure.add_annotation(
        x=math.log10(length),  # a note on a logarithmic axis is placed by its exponent
        y=0.02,
        yref="paper",
        text=f"{length:,} tokens",
        xanchor="left",
        showarrow=False,
    )
    figure = _logarithmic(figure, unit)
    figure.update_xaxes(range=[0, math.log10(far)])
    return figure


def time_lines(timed: Sequence[Timed], expected: Timed) -> go.Figure:
    """Measured milliseconds as points, and as a dashed line what the operations alone would give."""
    figure = go.Figure(
        go.Scatter(
            x=expected.lengths,
            y=[1_000 * seconds for seconds in expected.seconds],
            name=expected.name,
            mode="lines",
            line={"color": expected.colour, "dash": "dash"},
            hovertemplate="%{x:,} tokens: %{y:.3f} ms by the operations<extra></extra>",
        )
    )
    for row in timed:
        figure.add_trace(
            go.Scatter(
                x=row.lengths,
                y=[1_000 * seconds for seconds in row.seconds],
                name=row.name,
                mode="lines+markers",
                line={"color": row.colour},
                hovertemplate=row.name + "<br>%{x:,} tokens: %{y:.3f} ms<extra></extra>",
            )
        )
    figure = _logarithmic(figure, "milliseconds of one pass")
    figure.update_xaxes(tickvals=list(expected.lengths))
    return figure


def _logarithmic(figure: go.Figure, unit: str) -> go.Figure:
    figure.update_xaxes(title={"text": "length in tokens"}, type="log", tickformat=",", dtick=1)
    figure.update_yaxes(title={"text": unit}, type="log", exponentformat="SI", dtick=1)
    figure.update_layout(
        height=360,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        legend=ABOVE,
    )
    return figure
