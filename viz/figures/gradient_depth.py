"""The size of the gradient at each state of a deep stack, with and without shortcuts."""

from collections.abc import Sequence

import plotly.graph_objects as go

from viz.figures.legend import ABOVE
from viz.notation.theme import MASKED, STREAM


def gradient_by_depth(with_shortcuts: Sequence[float], without: Sequence[float]) -> go.Figure:
    """Both as lines over depth on a scale of powers of ten; entry 0 is the input of the stack."""
    figure = go.Figure()
    for name, sizes, colour, dash in (
        ("with shortcuts: x + f(x)", with_shortcuts, STREAM, "solid"),
        ("without: f(x)", without, MASKED, "dash"),
    ):
        figure.add_trace(
            go.Scatter(
                x=list(range(len(sizes))),
                y=list(sizes),
                name=name,
                mode="lines+markers",
                line={"color": colour, "dash": dash, "width": 2.5},
                marker={"size": 5},
                hovertemplate="before block %{x}: %{y:.2e}<extra></extra>",
            )
        )
    figure.update_xaxes(title={"text": "blocks passed, from input to loss"})
    figure.update_yaxes(
        title={"text": "size of the gradient"},
        type="log",
        exponentformat="power",
        nticks=8,
    )
    figure.update_layout(
        height=420,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        legend=ABOVE,
    )
    return figure
