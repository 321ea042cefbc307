"""Lines over the tokens of a text, one value a token."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from viz.figures.chart import Axis, chart, line, titled
from viz.figures.heatmap import SLANTED
from viz.notation.labels import plotly_label
from viz.notation.theme import MASKED


@dataclass(frozen=True)
class TokenLine:
    """A value for each token, in order."""

    name: str
    values: Sequence[float]
    colour: str
    dash: str = "solid"


def token_lines(
    tokens: Sequence[str],
    drawn: Sequence[TokenLine],
    *,
    unit: str,
    mark: float | None = None,
    zero: bool = False,
) -> go.Figure:
    """mark: a place among the tokens at which a dotted line stands. zero: whether the axis begins at 0."""
    named = [f"{place} {plotly_label(text)}" for place, text in enumerate(tokens)]
    lines = [
        line(
            list(range(len(tokens))),
            list(one.values),
            one.name,
            one.colour,
            dash=one.dash,
            mode="lines+markers" if len(tokens) <= 32 else "lines",
            marker={"size": 5},
            width=2,
            hovertext=named,
            hover=f"{one.name}<br>%{{hovertext}}: %{{y:.3f}}",
        )
        for one in drawn
    ]
    across = Axis("token", list(tokens)).across(tickangle=SLANTED)
    up = titled(unit, **({"rangemode": "tozero"} if zero else {}))
    figure = chart(lines, across, up, height=320, showlegend=True)
    if mark is not None:
        figure.add_vline(mark, line={"dash": "dot", "color": MASKED})
    return figure
