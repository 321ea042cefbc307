"""What all pictures share: margins, legend, axes, lines, marks, bars."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import plotly.graph_objects as go

from viz.notation.labels import LABELS, plotly_label, plotly_words, tick_positions

LABEL = 14  # characters beside a picture
BARE: Final = {"showgrid": False, "zeroline": False}
MONOSPACED: Final = {"family": "monospace"}
_MARGIN = {"l": 8, "r": 8, "t": 8, "b": 8}
_LEGEND = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0.0, "traceorder": "normal"}


def chart(
    traces: object, x: dict[str, object], y: dict[str, object], *, height: int, **layout: object
) -> go.Figure:
    """A figure of traces over the axes x and y, the legend above. It is made in one piece: to update a figure
    takes Plotly ten times as long."""
    shared = {"margin": _MARGIN, "legend": _LEGEND, "height": height}
    return go.Figure(traces, shared | {"xaxis": x, "yaxis": y} | layout)


def titled(title: str, **more: object) -> dict[str, object]:
    """An axis with a title, if that is not empty: Plotly would leave room for it."""
    return ({"title": {"text": title}} if title else {}) | more


@dataclass(frozen=True)
class Axis:
    """An axis whose positions have labels: tokens, or plain words."""

    name: str
    labels: Sequence[str]
    tokens: bool = True  # whether spaces and control characters are made visible
    longest: int = LABEL  # characters of a token's label

    def label(self, position: int) -> str:
        """One label, escaped for Plotly."""
        text = self.labels[position]
        return plotly_label(text, self.longest) if self.tokens else plotly_words(text)

    def across(self, most: int = LABELS, **more: object) -> dict[str, object]:
        """The axis from left to right, with at most so many evenly spaced labels."""
        ticks = tick_positions(len(self.labels), most)
        labels = [self.label(position) for position in ticks]
        ends = {"range": [-0.6, len(self.labels) - 0.4], "tickfont": MONOSPACED}
        return titled(self.name, tickvals=ticks, ticktext=labels, **ends) | BARE | more

    def down(self, most: int = LABELS, **more: object) -> dict[str, object]:
        """The axis from the top down."""
        return self.across(most) | {"range": [len(self.labels) - 0.5, -0.5]} | more


def line(
    x: object,
    y: object,
    name: str,
    colour: str,
    *,
    hover: str,
    mode: str = "lines",
    dash: str = "solid",
    width: float = 2.5,
    **more: object,
) -> go.Scatter:
    """One curve. hover: the template of what hovering over a point shows."""
    return go.Scatter(
        x=x,
        y=y,
        name=name,
        mode=mode,
        line={"color": colour, "dash": dash, "width": width},
        hovertemplate=f"{hover}<extra></extra>",
        **more,
    )


def marks(
    x: object, y: object, *, hover: str = "", mode: str = "markers", **more: object
) -> go.Scatter:
    """Marks or words without an entry in the legend. Without `hover`, hovering shows nothing."""
    says = {"hovertemplate": f"{hover}<extra></extra>"} if hover else {"hoverinfo": "skip"}
    return go.Scatter(x=x, y=y, mode=mode, **{"showlegend": False, **says, **more})


def bars_across(values: Sequence[float], colour: object, *, hover: str, **more: object) -> go.Bar:
    """Horizontal bars, one a row. hover: the template of what hovering over one shows."""
    places = {"y": list(range(len(values))), "orientation": "h", "cliponaxis": False} | more
    return go.Bar(
        x=list(values), marker={"color": colour}, hovertemplate=f"{hover}<extra></extra>", **places
    )
