"""One number a token, before and after a change: two marks and the way between them."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.figures.legend import ABOVE
from viz.notation.labels import plotly_label, tick_positions
from viz.notation.theme import LESS, MASKED, MORE

LABEL = 14  # characters
Values = NDArray[np.floating]


def before_and_after(
    tokens: Sequence[str],
    before: Values,
    after: Values,
    *,
    unit: str,
    colour: str,
    first: int = 0,
    top: float | None = None,
    decimals: int = 4,
) -> go.Figure:
    """before, after (token,) as marks over the tokens; red ways lead up, blue ones down.

    tokens: all tokens of the text; the values are those of the tokens from `first` on. top: end of
    the axis; None: what the values need. decimals: of the numbers on hovering.
    Raises ValueError if values and tokens do not fit.
    """
    places = list(range(first, first + len(before)))
    if before.shape != after.shape or first + len(before) > len(tokens):
        raise ValueError(f"{len(before)} and {len(after)} values for {len(tokens)} tokens.")
    figure = go.Figure()
    for name, hue, rises in (("more", MORE, True), ("less", LESS, False)):
        figure.add_trace(_ways(places, before, after, name, hue, rises))
    for name, values, shade, symbol in (
        ("unchanged", before, MASKED, "circle-open"),
        ("changed", after, colour, "circle"),
    ):
        figure.add_trace(
            go.Scatter(
                x=places,
                y=values.astype(np.float32),
                name=name,
                mode="markers",
                marker={"color": shade, "size": 9, "symbol": symbol, "line": {"width": 2}},
                hovertemplate=f"{name} %{{y:.{decimals}f}}<extra></extra>",
            )
        )
    _lay_out(figure, tokens)
    limit = top or 1.08 * float(max(before.max(initial=0), after.max(initial=0))) or 1.0
    figure.update_yaxes(title={"text": unit}, range=[-0.03 * limit, limit], nticks=6)
    return figure


def _lay_out(figure: go.Figure, tokens: Sequence[str]) -> None:
    """The tokens from left to right."""
    ticks = tick_positions(len(tokens))
    figure.update_xaxes(
        title={"text": "token"},
        tickvals=ticks,
        ticktext=[plotly_label(tokens[at], LABEL) for at in ticks],
        tickfont={"family": "monospace"},
        range=[-0.6, len(tokens) - 0.4],
        showgrid=False,
        zeroline=False,
    )
    figure.update_layout(
        height=360,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        legend=ABOVE,
    )


def _ways(
    places: Sequence[int], before: Values, after: Values, name: str, hue: str, rises: bool
) -> go.Scatter:
    """Lines from the one mark to the other, for those that rise, or those that fall."""
    x: list[int | None] = []
    y: list[float | None] = []
    for place, start, end in zip(places, before, after, strict=True):
        if (end > start) == rises and end != start:
            x += [place, place, None]
            y += [float(start), float(end), None]
    return go.Scatter(
        x=x,
        y=y,
        name=name,
        mode="lines",
        line={"color": hue, "width": 3},
        hoverinfo="skip",
        showlegend=False,
    )
