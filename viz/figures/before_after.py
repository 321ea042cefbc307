"""One number for each token, before and after a change: two marks joined by a line."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.figures.chart import Axis, chart, marks, titled
from viz.notation.numbers import fixed
from viz.notation.theme import LESS, MASKED, MORE

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
    """before, after (token,) as marks over the tokens; red lines lead up, blue ones down.

    tokens: all tokens of the text; the values are those of the tokens from `first` on. top: end of
    the axis; None: what the values need. decimals: of the numbers on hovering.
    Raises ValueError if values and tokens do not fit.
    """
    places = np.arange(first, first + len(before))
    if before.shape != after.shape or first + len(before) > len(tokens):
        raise ValueError(f"{len(before)} and {len(after)} values for {len(tokens)} tokens.")
    traces = [
        _ways(places[chosen], before[chosen], after[chosen], name, hue)
        for name, hue, chosen in (("more", MORE, after > before), ("less", LESS, after < before))
    ]
    for name, values, shade, symbol in (
        ("unchanged", before, MASKED, "circle-open"),
        ("changed", after, colour, "circle"),
    ):
        look = {"color": shade, "size": 9, "symbol": symbol, "line": {"width": 2}}
        hover = f"{name} %{{customdata}}"
        drawn = values.astype(np.float32)
        points = marks(places, drawn, name=name, marker=look, hover=hover, showlegend=True)
        traces.append(points.update(customdata=[fixed(float(one), decimals) for one in values]))
    limit = top or 1.08 * float(max(before.max(initial=0), after.max(initial=0))) or 1.0
    up = titled(unit, range=[-0.03 * limit, limit], nticks=6)
    return chart(traces, Axis("token", tokens).across(), up, height=360)


def _ways(
    places: NDArray[np.intp], before: Values, after: Values, name: str, hue: str
) -> go.Scatter:
    """Vertical lines from the one mark to the other."""
    gap = np.full(len(places), None)
    return go.Scatter(
        x=np.stack([places, places, gap], 1).ravel(),
        y=np.stack([before, after, gap], 1).ravel(),
        name=name,
        mode="lines",
        line={"color": hue, "width": 3},
        hoverinfo="skip",
        showlegend=False,
    )
