"""What all figures share: margins, legend, axes, lines, marks, bars, notes and frames."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import plotly.graph_objects as go

from viz.notation.labels import LABELS, plotly_label, plotly_words, tick_positions
from viz.notation.theme import MASKED, colours_on_white

TraceStyle = dict[str, Any]  # arguments of Plotly's
LABEL = 14  # characters beside a figure
SLANTED = -60  # degrees of labels that stand above or below many columns
BARE: Final = {"showgrid": False, "zeroline": False}
MONOSPACED: Final = {"family": "monospace"}
SMALL: Final = MONOSPACED | {"size": 13}
DOTTED: Final = {"dash": "dot", "color": MASKED}
# A click selects a point, and Plotly would make all others pale.
STEADY: TraceStyle = {
    "selected": {"marker": {"opacity": 1}},
    "unselected": {"marker": {"opacity": 1}},
}
CLICKED: Final = {"clickmode": "event+select", "dragmode": False}
_MARGIN = {"l": 8, "r": 8, "t": 8, "b": 8}
_LEGEND = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0.0, "traceorder": "normal"}


def chart(
    traces: object, x: dict[str, object], y: dict[str, object], *, height: int, **layout: object
) -> go.Figure:
    """A figure of traces over two axes, the legend above. It is made in one piece: to update a figure
    takes Plotly ten times as long. What all figures share stands here and in no template of Plotly's, for
    Streamlit and a page on white each bring a template of their own.

    Args:
        x, y: the axes, as Plotly's layout has them.
        height: in pixels.
        layout: more of Plotly's layout; it overrides what figures share.
    """
    shared = {"margin": _MARGIN, "legend": _LEGEND, "height": height}
    return go.Figure(traces, shared | {"xaxis": x, "yaxis": y} | layout)


def on_white(figure: go.Figure) -> go.Figure:
    """The figure for a page without a theme: in the colours of a light page, with room for its labels."""
    colours = colours_on_white()

    def printed(part: Any) -> Any:
        if isinstance(part, dict):
            return {name: printed(one) for name, one in part.items()}
        if isinstance(part, list | tuple):
            return [printed(one) for one in part]
        return colours.get(part, part) if isinstance(part, str) else part

    traces = [printed(trace.to_plotly_json()) for trace in figure.data]
    layout = printed(figure.layout.to_plotly_json()) | {"template": "plotly_white"}
    return go.Figure(traces, layout)


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


def numbered(name: str, count: int) -> Axis:
    """An axis of numbers from 0."""
    return Axis(name, [str(number) for number in range(count)], tokens=False)


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
    """One curve.

    Args:
        hover: the template of what hovering over a point shows.
        dash: a name of Plotly's.
        width: in pixels.
        more: arguments of Plotly's scatter.
    """
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
    """Marks, words or lines without an entry in the legend.

    Args:
        hover: the template of what hovering shows; "": nothing.
        mode: Plotly's: markers, text, lines, or a sum of them.
        more: arguments of Plotly's scatter.
    """
    says = {"hovertemplate": f"{hover}<extra></extra>"} if hover else {"hoverinfo": "skip"}
    return go.Scatter(x=x, y=y, mode=mode, **{"showlegend": False, **says, **more})


def bars_across(values: Sequence[float], colour: object, *, hover: str, **more: object) -> go.Bar:
    """Horizontal bars, one a row.

    Args:
        colour: of all, or of each bar.
        hover: the template of what hovering over one shows.
        more: arguments of Plotly's bars.
    """
    places = {"y": list(range(len(values))), "orientation": "h", "cliponaxis": False} | more
    return go.Bar(
        x=list(values), marker={"color": colour}, hovertemplate=f"{hover}<extra></extra>", **places
    )


def ends_around(values: Sequence[float], share: float) -> list[float]:
    """The ends of an axis with 0 on it, with so much of the longest bar's length beyond each bar, for its
    number."""
    low, high = min([0.0, *values]), max([0.0, *values])
    room = share * (max(-low, high) or 1.0)
    return [low - room if low < 0 else 0.0, high + room]


def note(text: str, x: float, y: float, **more: object) -> dict[str, object]:
    """Words on a figure, to the right of their place.

    Args:
        x, y: on the axes, unless `more` names other ones.
        more: of Plotly's annotations.
    """
    return {"text": text, "x": x, "y": y, "showarrow": False, "xanchor": "left"} | more


def note_above(text: str, y: float) -> dict[str, object]:
    """Words on a figure's left edge, above a height of 0 to 1."""
    return note(text, 0, y, xref="paper", yref="paper", yanchor="bottom")


def frame(
    figure: go.Figure,
    sides: tuple[float, float, float, float],
    colour: str,
    width: float = 2,
    dash: str | None = None,
) -> None:
    """A frame on a figure.

    Args:
        sides: left, right, top and bottom, on the axes.
        width: in pixels.
        dash: a name of Plotly's; None: a whole line.
    """
    left, right, top, bottom = sides
    line = {"color": colour, "width": width, "dash": dash}
    figure.add_shape(type="rect", x0=left, x1=right, y0=top, y1=bottom, line=line)


def drawn_path(path: str, colour: str, width: float) -> dict[str, object]:
    """Lines as one of a figure's shapes: the browser draws it as one element, and a trace as one each line.

    Args:
        path: as in SVG, with M, L and Z, in the units of the axes.
        width: in pixels.
    """
    return {"type": "path", "path": path, "line": {"color": colour, "width": width}}


def outlines(
    sides: Sequence[tuple[float, float, float, float]], colour: str, width: float
) -> dict[str, object]:
    """Rectangles (left, right, top, bottom) as one of a figure's shapes. width: of the line in pixels."""
    path = "".join(
        f"M{left},{top}L{right},{top}L{right},{bottom}L{left},{bottom}Z"
        for left, right, top, bottom in sides
    )
    return drawn_path(path, colour, width)


def rectangles(sides: Sequence[tuple[float, float, float, float]]) -> TraceStyle:
    """The corners of rectangles (left, right, top, bottom), for one line around all."""
    x: list[float | None] = []
    y: list[float | None] = []
    for left, right, top, bottom in sides:
        x += [left, right, right, left, left, None]
        y += [top, top, bottom, bottom, top, None]
    return {"x": x, "y": y}
