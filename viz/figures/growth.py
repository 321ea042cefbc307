"""Cost against length: one line grows with the square, one with the length; they cross."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from model.analysis.cost.cost import Growth
from viz.figures.chart import chart, line, marks, titled
from viz.notation.theme import MASKED, WEIGHT

LINEAR = MASKED


@dataclass(frozen=True)
class Timed:
    """Measured seconds at some lengths."""

    name: str
    lengths: Sequence[int]
    seconds: Sequence[float]
    colour: str


def growth_lines(cost: Growth, *, length: int, unit: str) -> go.Figure:
    """Both axes are logarithmic, so the square is the steeper line. A dotted line marks `length`, a
    cross the length beyond which the square costs more."""
    far = max(4 * length, 4 * (cost.crossing or 1), 64)
    lengths = np.geomspace(1, far, 60)
    traces = [
        line(
            lengths,
            values,
            name,
            colour,
            width=3,
            hover=f"{name}<br>length %{{x:,.0f}}: %{{y:.3s}}",
        )
        for name, values, colour in (
            ("pairs of tokens: grows with n²", cost.quadratic * lengths**2, WEIGHT),
            ("all else: grows with n", cost.linear * lengths, LINEAR),
        )
    ]
    if cost.crossing:
        traces.append(
            marks(
                [cost.crossing],
                [cost.linear * cost.crossing],
                name=f"equal at {cost.crossing:,.0f} tokens",
                marker={"color": WEIGHT, "size": 12, "symbol": "x"},
                hover="equal at %{x:,.1f} tokens",
                showlegend=True,
            )
        )
    figure = _logarithmic(traces, unit, range=[0, math.log10(far)])
    figure.add_vline(length, line={"dash": "dot", "color": MASKED})
    return figure.add_annotation(
        x=math.log10(length),  # a note on a logarithmic axis is placed by its exponent
        y=0.02,
        yref="paper",
        text=f"{length:,} tokens",
        xanchor="left",
        showarrow=False,
    )


def time_lines(timed: Sequence[Timed], expected: Timed) -> go.Figure:
    """Measured milliseconds, and as a dashed line what the number of operations predicts."""
    by_operations = "%{x:,} tokens: %{y:.3f} ms by the operations"
    traces = [_times(expected, dash="dash", hover=by_operations)]
    for row in timed:
        hover = f"{row.name}<br>%{{x:,}} tokens: %{{y:.3f}} ms"
        traces.append(_times(row, mode="lines+markers", hover=hover))
    return _logarithmic(traces, "milliseconds of one pass", tickvals=list(expected.lengths))


def _times(row: Timed, *, hover: str, mode: str = "lines", dash: str = "solid") -> go.Scatter:
    milliseconds = [1_000 * seconds for seconds in row.seconds]
    drawn = (row.lengths, milliseconds, row.name, row.colour)
    return line(*drawn, hover=hover, mode=mode, dash=dash, width=2)


def _logarithmic(traces: Sequence[go.Scatter], unit: str, **lengths: object) -> go.Figure:
    across = titled("length in tokens", type="log", tickformat=",", dtick=1, **lengths)
    return chart(traces, across, titled(unit, type="log", exponentformat="SI", dtick=1), height=360)
