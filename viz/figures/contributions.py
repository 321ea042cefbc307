"""The length of what each sub-layer adds to the residual stream."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.figures.chart import chart, line, marks, titled
from viz.figures.heatmap import Axis, heatmap
from viz.figures.token_rows import colour_end
from viz.notation.theme import FEED_FORWARD, MASKED, STREAM, WEIGHT, rgba

Lengths = NDArray[np.floating]
_ADDED_BY = (WEIGHT, FEED_FORWARD)  # attention, feed-forward
# At the foot of a bar: above it the line would cross its number.
_NUMBERS: Final = {
    "texttemplate": "%{y:.3g}",
    "textposition": "auto",
    "insidetextanchor": "start",
    "cliponaxis": False,
}
_WORDS_ON = {WEIGHT: "white", FEED_FORWARD: "black"}  # numbers that can be read on these colours


def contribution_lengths(
    names: Sequence[str], added: Lengths, stream: Lengths, *, token: int | None
) -> go.Figure:
    """Bars: the length of what each sub-layer adds; a line: the length of the stream it reads.

    added, stream: (sub-layer, token). token: whose lengths are drawn, with the mean of all tokens
    as diamonds; None: the mean.
    """
    positions = list(range(len(names)))
    means, found = added.mean(1), stream.mean(1) if token is None else stream[:, token]
    whose = "mean of all tokens" if token is None else "this token"
    colours = [_ADDED_BY[name.endswith("feed-forward")] for name in names]
    bars = go.Bar(
        x=positions,
        y=means if token is None else added[:, token],
        name=f"added, {whose}",
        marker={"color": colours},
        insidetextfont={"color": [_WORDS_ON[colour] for colour in colours]},
        **_NUMBERS,
        hovertemplate="adds %{y:.4f}<extra></extra>",
        showlegend=False,
    )
    mean = marks(
        positions,
        means,
        name="added, mean of all tokens",
        marker={"symbol": "diamond", "size": 11, "color": MASKED},
        hover="mean %{y:.4f}",
        showlegend=True,
    )
    stream_line = line(
        *(positions, found, f"the stream before it, {whose}", STREAM),
        mode="lines+markers",
        width=2,
        hover="stream %{y:.4f}",
    )
    meanings = [
        go.Bar(x=[None], y=[None], name=f"{name} adds", marker={"color": colour})
        for name, colour in zip(("attention", "feed-forward"), _ADDED_BY, strict=True)
    ]
    ticks = {"tickvals": positions, "ticktext": [name.replace(" ", "<br>", 1) for name in names]}
    return chart(
        [bars, *([] if token is None else [mean]), stream_line, *meanings],
        titled("sub-layer, in order", **ticks),
        titled("length of the vector", rangemode="tozero"),
        height=430,
        barmode="overlay",
    )


def contribution_rows(names: Sequence[str], added: Lengths, tokens: Sequence[str]) -> go.Figure:
    """added (sub-layer, token) as a heatmap, a row a token; colours start at 0."""
    end = colour_end(added, 95)
    title = "length of what each sub-layer adds"
    columns = Axis(title, names, tokens=False)
    figure = heatmap(added.T, rows=Axis("token", tokens), columns=columns, quantity="stream")
    rising = [[0, rgba(STREAM, 0.0)], [1, rgba(STREAM, 1.0)]]
    figure.data[-1].update(zmin=0, zmax=end.value or 1.0, colorscale=rising)
    return figure.update_xaxes(title={"text": f"{title}<br>{end.words.replace('±', '')}"})
