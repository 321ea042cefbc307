"""Activation functions as curves, and one of them over the values that reached it in a layer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from model.analysis.stream.activation_curves import ActivationCurve, Function
from model.analysis.stream.neurons import Histogram
from viz.figures.chart import chart, line, marks, titled
from viz.notation.labels import plotly_words
from viz.notation.numbers import signed
from viz.notation.theme import FEED_FORWARD, MASKED, OUTPUT, STREAM, rgba

_LOOKS = ((STREAM, "solid"), (MASKED, "dash"), (FEED_FORWARD, "solid"), (OUTPUT, "solid"))


@dataclass(frozen=True)
class ActivationLine:
    """One curve to draw: its name and its value or slope."""

    name: str
    function: Function


def activation_curves(lines: Sequence[ActivationLine], *, what: str) -> go.Figure:
    """Up to four curves over x from -5 to 5; `what` names the vertical axis."""
    points = np.linspace(-5, 5, 401)
    drawn = [_curve(points, one, *look) for one, look in zip(lines, _LOOKS, strict=False)]
    across = titled("x, before the activation", zeroline=True)
    return chart(drawn, across, titled(what, zeroline=True), height=400)


def points_on_the_curve(curve: ActivationCurve, points: Mapping[str, float]) -> go.Figure:
    """The curve beside the line that changes nothing, and on it some named values."""
    x = list(points.values())
    ends = np.linspace(min(-4.0, *x) - 0.5, max(4.0, *x) + 0.5, 401)
    same = line(ends, ends, "unchanged", MASKED, dash="dot", width=1.5, hover="%{x:.2f}")
    y = curve.value(np.array(x))
    named = marks(
        x,
        y,
        mode="markers+text",
        marker={"color": STREAM, "size": 9},
        text=[plotly_words(name) for name in points],
        textposition=["top left" if value > 0 else "top center" for value in x],
        hover="%{text}<br>x = %{x:.4f}: %{y:.4f}",
    )
    name = curve.title.partition(",")[0]  # short: on a phone the legend would lie on the curve
    drawn = [same, _curve(ends, ActivationLine(name, curve.value), FEED_FORWARD, "solid")]
    across = titled("before the activation", zeroline=True)
    after = titled("after it", zeroline=True, range=[float(y.min()) - 1, float(y.max()) + 1])
    return chart([*drawn, named], across, after, height=250)


def curve_over_values(curve: ActivationCurve, met: Histogram) -> go.Figure:
    """The curve and its slope as lines, in front of a histogram of the values that reached it."""
    points = np.linspace(met.edges[0], met.edges[-1], 401)
    bars = go.Bar(
        x=(met.edges[:-1] + met.edges[1:]) / 2,
        y=100 * met.shares,
        width=np.diff(met.edges),
        name="values of this run",
        marker={"color": rgba(MASKED, 0.45), "line": {"width": 0}},
        yaxis="y2",
        hovertemplate="around %{x:.2f}: %{y:.2f} % of the values<extra></extra>",
    )
    lines = [
        _curve(points, ActivationLine(curve.title, curve.value), STREAM, "solid"),
        _curve(points, ActivationLine("its slope", curve.slope), OUTPUT, "dot"),
    ]
    low, high = (signed(f"{end:.2f}") for end in met.reach)
    outside = (
        f"{met.outside:,} of {met.total:,} values lie outside;<br>all run from {low} to {high}"
    )
    shares = titled("share of the values, %", side="right", showgrid=False, tickmode="auto")
    return chart(
        [bars, *lines],
        titled(f"before the activation<br>{outside}"),
        titled("after it; slope", overlaying="y2", tickmode="auto"),
        yaxis2=shares | {"rangemode": "tozero"},
        height=430,
        bargap=0,
    )


def _curve(
    points: NDArray[np.float64], drawn: ActivationLine, colour: str, dash: str
) -> go.Scatter:
    hover = f"{drawn.name}<br>x = %{{x:.2f}}: %{{y:.4f}}"
    return line(points, drawn.function(points), drawn.name, colour, dash=dash, hover=hover)
