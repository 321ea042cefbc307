"""How far dividing the variance by d - 1 instead of d moves the normalized values, by width."""

import numpy as np
import plotly.graph_objects as go

from model.arithmetic.normalization import shrinkage
from viz.figures.legend import ABOVE
from viz.notation.theme import MASKED, STREAM

_WIDTHS = np.unique(np.round(np.geomspace(2, 4096, 120)))


def variance_gap(width: int, *, others: tuple[int, ...] = (4, 512)) -> go.Figure:
    """The gap in percent against the width, with this model's width and a few others marked."""
    figure = go.Figure(
        go.Scatter(
            x=_WIDTHS,
            y=100 * shrinkage(_WIDTHS),
            mode="lines",
            line={"color": MASKED, "width": 2},
            hovertemplate="d = %{x:.0f}: %{y:.3f} %<extra></extra>",
            showlegend=False,
        )
    )
    marks = (("other widths", [d for d in others if d != width], MASKED),)
    for name, widths, colour in (*marks, ("this model", [width], STREAM)):
        gaps = 100 * shrinkage(np.array(widths, np.float64))
        figure.add_trace(
            go.Scatter(
                x=widths,
                y=gaps,
                name=name,
                mode="markers+text",
                marker={"color": colour, "size": 11},
                text=[f"d = {d}: {gap:.2f} %" for d, gap in zip(widths, gaps, strict=True)],
                textposition=[_beside(d, (*others, width)) for d in widths],
                cliponaxis=False,
                hovertemplate="%{text}<extra></extra>",
            )
        )
    figure.update_xaxes(
        title={"text": "width d (dimensions of a token)"},
        type="log",
        tickvals=[2, 4, 16, 64, 256, 1024, 4096],
        ticktext=["2", "4", "16", "64", "256", "1024", "4096"],
        range=[np.log10(1.7), np.log10(9000)],
    )
    figure.update_yaxes(title={"text": "unbiased smaller by, %"}, rangemode="tozero")
    figure.update_layout(
        height=360,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        legend=ABOVE,
    )
    return figure


def _beside(width: int, all_widths: tuple[int, ...]) -> str:
    """A label stands on the right of its mark, on the left where another mark is close by."""
    close = any(width < other < 8 * width for other in all_widths)
    return "top left" if close else "top right"
