"""How much each sub-layer adds to the residual stream."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.figures.heatmap import Axis, heatmap
from viz.figures.legend import ABOVE
from viz.figures.token_rows import colour_end
from viz.notation.theme import FEED_FORWARD, MASKED, STREAM, WEIGHT, rgba

Lengths = NDArray[np.floating]


def contribution_lengths(
    names: Sequence[str], added: Lengths, stream: Lengths, *, token: int | None
) -> go.Figure:
    """Bars: the length of what each sub-layer adds; a line: the length of the stream it finds.

    added, stream: (sub-layer, token). token: whose lengths are drawn, with the mean of all tokens
    as diamonds; None: the mean.
    """
    positions = list(range(len(names)))
    means = added.mean(1)
    drawn = means if token is None else added[:, token]
    found = stream.mean(1) if token is None else stream[:, token]
    whose = "mean of all tokens" if token is None else "this token"
    figure = go.Figure(
        go.Bar(
            x=positions,
            y=drawn,
            name=f"added, {whose}",
            marker={"color": [_colour(name) for name in names]},
            texttemplate="%{y:.3g}",
            textposition="outside",
            cliponaxis=False,
            hovertemplate="adds %{y:.4f}<extra></extra>",
            showlegend=False,
        )
    )
    if token is not None:
        figure.add_trace(
            go.Scatter(
                x=positions,
                y=means,
                name="added, mean of all tokens",
                mode="markers",
                marker={"symbol": "diamond", "size": 11, "color": MASKED},
                hovertemplate="mean %{y:.4f}<extra></extra>",
            )
        )
    figure.add_trace(
        go.Scatter(
            x=positions,
            y=found,
            name=f"the stream it finds, {whose}",
            mode="lines+markers",
            line={"color": STREAM, "width": 2},
            hovertemplate="stream %{y:.4f}<extra></extra>",
        )
    )
    _lay_out(figure, names)
    return figure


def _lay_out(figure: go.Figure, names: Sequence[str]) -> None:
    """Sub-layers from left to right, and what the bars' colours mean."""
    for name, colour in (("attention adds", WEIGHT), ("feed-forward adds", FEED_FORWARD)):
        figure.add_trace(go.Bar(x=[None], y=[None], name=name, marker={"color": colour}))
    figure.update_xaxes(
        tickvals=list(range(len(names))),
        ticktext=[name.replace(" ", "<br>", 1) for name in names],
        title={"text": "sub-layer, in order"},
    )
    figure.update_yaxes(title={"text": "length of the vector"}, rangemode="tozero")
    figure.update_layout(
        height=430,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        legend=ABOVE,
        barmode="overlay",
    )


def contribution_rows(names: Sequence[str], added: Lengths, tokens: Sequence[str]) -> go.Figure:
    """added (sub-layer, token) as a heatmap, a row a token; colours start at 0."""
    end = colour_end(added, 95)
    figure = heatmap(
        added.T,
        rows=Axis("token", tokens),
        columns=Axis("length of what each sub-layer adds", names, tokens=False),
        quantity="stream",
    )
    rising = [[0, rgba(STREAM, 0.0)], [1, rgba(STREAM, 1.0)]]
    figure.data[-1].update(zmin=0, zmax=end.value or 1.0, colorscale=rising)
    words = end.words.replace("±", "")
    figure.update_xaxes(title={"text": f"length of what each sub-layer adds<br>{words}"})
    return figure


def _colour(name: str) -> str:
    return FEED_FORWARD if name.endswith("feed-forward") else WEIGHT
