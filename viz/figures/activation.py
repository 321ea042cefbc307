"""Activation functions as curves, and one of them over the values that a layer really met."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from model.analysis.stream.activation_curves import Curve, Function
from model.analysis.stream.neurons import Histogram
from viz.figures.legend import ABOVE
from viz.notation.theme import FEED_FORWARD, MASKED, OUTPUT, STREAM, rgba

_POINTS = np.linspace(-5, 5, 401)
_LOOKS = ((STREAM, "solid"), (MASKED, "dash"), (FEED_FORWARD, "solid"), (OUTPUT, "solid"))


@dataclass(frozen=True)
class Line:
    """One curve to draw: its name and its value or slope."""

    name: str
    function: Function


def activation_curves(lines: Sequence[Line], *, what: str) -> go.Figure:
    """Up to four curves over x from -5 to 5; `what` names the vertical axis."""
    figure = go.Figure()
    for line, (colour, dash) in zip(lines, _LOOKS, strict=False):
        figure.add_trace(
            go.Scatter(
                x=_POINTS,
                y=line.function(_POINTS),
                name=line.name,
                mode="lines",
                line={"color": colour, "dash": dash, "width": 2.5},
                hovertemplate="x = %{x:.2f}: %{y:.4f}<extra>" + line.name + "</extra>",
            )
        )
    figure.update_xaxes(title={"text": "x, before the activation"}, zeroline=True)
    figure.update_yaxes(title={"text": what}, zeroline=True)
    figure.update_layout(
        height=400,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        legend=ABOVE,
    )
    return figure


def curve_over_values(curve: Curve, met: Histogram) -> go.Figure:
    """The curve and its slope as lines, and behind them how often each value was met."""
    centres = (met.edges[:-1] + met.edges[1:]) / 2
    points = np.linspace(met.edges[0], met.edges[-1], 401)
    figure = go.Figure(
        go.Bar(
            x=centres,
            y=100 * met.shares,
            width=np.diff(met.edges),
            name="values met",
            marker={"color": rgba(MASKED, 0.45), "line": {"width": 0}},
            yaxis="y2",
            hovertemplate="around %{x:.2f}: %{y:.2f} % of the values<extra></extra>",
        )
    )
    for name, function, colour, dash in (
        (curve.title, curve.value, STREAM, "solid"),
        ("its slope", curve.slope, OUTPUT, "dot"),
    ):
        figure.add_trace(
            go.Scatter(
                x=points,
                y=function(points),
                name=name,
                mode="lines",
                line={"color": colour, "dash": dash, "width": 2.5},
                hovertemplate="x = %{x:.2f}: %{y:.4f}<extra>" + name + "</extra>",
            )
        )
    outside = f"{met.outside:,} of {met.total:,} values lie outside this picture"
    figure.update_xaxes(title={"text": f"before the activation<br>{outside}"})
    figure.update_layout(
        height=430,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        legend=ABOVE,
        bargap=0,
        yaxis={"title": {"text": "after it; slope"}, "overlaying": "y2", "tickmode": "auto"},
        yaxis2={
            "title": {"text": "share of the values, %"},
            "side": "right",
            "showgrid": False,
            "tickmode": "auto",
            "rangemode": "tozero",
        },
    )
    return figure
