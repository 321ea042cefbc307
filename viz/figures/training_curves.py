"""Losses and scores of a training run against its steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

import plotly.graph_objects as go

from viz.figures.chart import chart, line, titled
from viz.notation.theme import FEED_FORWARD, OUTPUT, WEIGHT

_LOOKS = ((WEIGHT, "solid"), (WEIGHT, "dash"), (FEED_FORWARD, "solid"), (FEED_FORWARD, "dot"))


@dataclass(frozen=True)
class Curve:
    """Values at some training steps."""

    steps: Sequence[int]
    values: Sequence[float]


def training_curves(losses: Mapping[str, Curve], scores: Mapping[str, Curve]) -> go.Figure:
    """Losses (nats a token) above, scores (0 to 1) below, against the same steps."""
    looks = [(OUTPUT, dash) for _, dash in _LOOKS]
    traces = [
        line(
            curve.steps,
            curve.values,
            name,
            colour,
            dash=dash,
            mode="lines+markers",
            marker={"size": 5},
            width=2,
            yaxis=axis,
            hover=f"step %{{x}}<br>{name} %{{y:.4f}}",
        )
        for axis, curves, among in (("y", losses, looks), ("y2", scores, _LOOKS))
        for (name, curve), (colour, dash) in zip(curves.items(), cycle(among))
    ]
    above = titled("loss, nats a token", rangemode="tozero", domain=[0.54, 1])
    below = titled("score", range=[-0.03, 1.05], domain=[0, 0.46])
    return chart(traces, titled("training step", anchor="y2"), above, yaxis2=below, height=430)
