"""Measured curves over a logarithmic axis: scores with and without scaling, slopes of a softmax."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from viz.figures.chart import chart, line, titled
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
            law = {"name": "what the law gives", "showlegend": number == 0, "hoverinfo": "skip"}
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
