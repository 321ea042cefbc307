"""Losses and scores of a training against its steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from viz.figures.legend import ABOVE
from viz.notation.theme import FEED_FORWARD, OUTPUT, QUANTITIES

_COLOURS = (QUANTITIES["weight"].hue, QUANTITIES["weight"].hue, FEED_FORWARD, FEED_FORWARD)
_DASHES = ("solid", "dash", "solid", "dot")


@dataclass(frozen=True)
class Curve:
    """Values at some steps."""

    steps: Sequence[int]
    values: Sequence[float]


def training_curves(
    losses: Mapping[str, Curve], scores: Mapping[str, Curve], *, height: int = 430
) -> go.Figure:
    """Losses (nats a token) above, scores (0 to 1) below, against the same steps."""
    figure = make_subplots(rows=2, shared_xaxes=True, vertical_spacing=0.08)
    for row, curves in ((1, losses), (2, scores)):
        for at, (name, curve) in enumerate(curves.items()):
            colour = OUTPUT if row == 1 else _COLOURS[at % len(_COLOURS)]
            figure.add_trace(
                go.Scatter(
                    x=list(curve.steps),
                    y=list(curve.values),
                    name=name,
                    mode="lines+markers",
                    line={"color": colour, "dash": _DASHES[at % len(_DASHES)]},
                    marker={"size": 5},
                    hovertemplate=f"step %{{x}}<br>{name} %{{y:.4f}}<extra></extra>",
                ),
                row=row,
                col=1,
            )
    figure.update_yaxes(title_text="loss, nats a token", rangemode="tozero", row=1, col=1)
    figure.update_yaxes(title_text="score", range=[-0.03, 1.05], row=2, col=1)
    figure.update_xaxes(title_text="training step", row=2, col=1)
    figure.update_layout(
        height=height,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        legend=ABOVE,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
    )
    return figure
