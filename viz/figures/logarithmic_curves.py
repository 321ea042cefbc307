"""Curves over a logarithmic axis: measured values, growing costs, times."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from model.analysis.cost.cost import Growth
from viz.figures.chart import chart, line, marks, titled
from viz.notation.theme import KEY, LESS, MASKED, WEIGHT

PLAIN, SCALED = KEY, WEIGHT  # colours of what is not scaled and of what is


@dataclass(frozen=True)
class Curve:
    """Measured values at some points. `law`: what theory predicts, drawn dotted."""

    name: str
    values: Sequence[float]
    colour: str
    law: Sequence[float] | None = None


def curves(
    points: Sequence[float],
    drawn: Sequence[Curve],
    *,
    axis: str,
    unit: str,
    logarithmic: bool = False,
    band: tuple[float, float] | None = None,
    mark: float | None = None,
) -> go.Figure:
    """One line a curve over the points. logarithmic: whether the values' axis is, too.

    band: two values to shade between. mark: a point at which a dotted line stands.
    """
    traces = []
    for number, curve in enumerate(drawn):
        if curve.law is not None:  # wide, so that it shows under the measured line
            dotted = {"color": MASKED, "dash": "dot", "width": 6}
            law = {"name": "what the formula gives", "showlegend": number == 0, "hoverinfo": "skip"}
            traces.append(go.Scatter(x=points, y=curve.law, mode="lines", line=dotted, **law))
        hover = f"{curve.name}<br>%{{x:.4g}}: %{{y:.4g}}"
        seen = (points, curve.values, curve.name, curve.colour)
        traces.append(line(*seen, hover=hover, mode="lines+markers", width=3))
    # A tick for each point if there are few, else ticks at 1 and 3 times each power of ten.
    ticks = list(points) if len(points) <= 10 else [0.1, 0.3, 1, 3, 10, 30]
    scale: dict[str, object] = (
        {"type": "log", "dtick": 1} if logarithmic else {"rangemode": "tozero"}
    )
    across = titled(axis, type="log", tickvals=ticks)
    figure = chart(traces, across, titled(unit, **scale), height=360)
    if band is not None:
        figure.add_hrect(*band, fillcolor=LESS, opacity=0.12, line_width=0)
    if mark is not None:
        figure.add_vline(mark, line={"dash": "dot", "color": MASKED})
    return figure


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
            ("everything else: grows with n", cost.linear * lengths, LINEAR),
        )
    ]
    if cost.crossing:
        traces.append(
            marks(
                [cost.crossing],
                [cost.linear * cost.crossing],
                name=f"equal at {cost.crossing:,.1f} tokens",
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
