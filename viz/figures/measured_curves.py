"""Measured curves over a logarithmic axis: with scaling and without, and slopes of a softmax."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from viz.figures.legend import ABOVE
from viz.notation.theme import KEY, LESS, MASKED, WEIGHT


@dataclass(frozen=True)
class Curve:
    """Measured values at some points; `law` is what arithmetic gives for them, drawn dotted."""

    name: str
    values: Sequence[float]
    colour: str
    law: Sequence[float] | None = None


PLAIN, SCALED = KEY, WEIGHT  # colours of what is not scaled and of what is


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
    figure = go.Figure()
    for number, curve in enumerate(drawn):
        if curve.law is not None:
            figure.add_trace(_law(points, curve.law, named=number == 0))
        figure.add_trace(_measured(points, curve))
    if band is not None:
        figure.add_hrect(*band, fillcolor=LESS, opacity=0.12, line_width=0)
    if mark is not None:
        figure.add_vline(mark, line={"dash": "dot", "color": MASKED})
    figure.update_xaxes(title={"text": axis}, type="log", **_ticks(points))
    kind = {"type": "log", "dtick": 1} if logarithmic else {"rangemode": "tozero"}
    figure.update_yaxes(title={"text": unit}, **kind)
    figure.update_layout(
        height=360,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        legend=ABOVE,
    )
    return figure


def _law(points: Sequence[float], values: Sequence[float], *, named: bool) -> go.Scatter:
    """What a law gives at the points, wide and dotted, so that a line on it can be seen."""
    return go.Scatter(
        x=list(points),
        y=list(values),
        name="what the law gives",
        mode="lines",
        line={"color": MASKED, "dash": "dot", "width": 6},
        showlegend=named,
        hoverinfo="skip",
    )


def _measured(points: Sequence[float], curve: Curve) -> go.Scatter:
    """One curve's own values."""
    return go.Scatter(
        x=list(points),
        y=list(curve.values),
        name=curve.name,
        mode="lines+markers",
        line={"color": curve.colour, "width": 3},
        hovertemplate=curve.name + "<br>%{x:.4g}: %{y:.4g}<extra></extra>",
    )


def _ticks(points: Sequence[float]) -> Mapping[str, object]:
    """Each point has its tick, where there are few; else a third of each power of ten."""
    few = len(points) <= 10
    return {"tickvals": list(points) if few else [0.1, 0.3, 1, 3, 10, 30]}
