"""The tokens nearest to one token, as bars of their cosine."""

from collections.abc import Sequence

import plotly.graph_objects as go

from viz.notation.labels import plotly_label
from viz.notation.theme import STREAM

LABEL = 18  # characters


def neighbours_bars(texts: Sequence[str], cosines: Sequence[float]) -> go.Figure:
    """One row a token, the nearest on top. Cosines lie between -1 and 1."""
    rows = list(range(len(texts)))
    figure = go.Figure(
        go.Bar(
            x=list(cosines),
            y=rows,
            orientation="h",
            marker={"color": STREAM},
            texttemplate="%{x:.4f}",
            textposition="outside",
            cliponaxis=False,
            hovertext=[plotly_label(text) for text in texts],
            hovertemplate="%{hovertext}<br>cosine %{x:.6f}<extra></extra>",
        )
    )
    figure.update_yaxes(
        tickvals=rows,
        ticktext=[plotly_label(text, LABEL) for text in texts],
        tickfont={"family": "monospace"},
        autorange="reversed",
        showgrid=False,
    )
    lowest = min(0.0, *cosines) if cosines else 0.0
    figure.update_xaxes(
        title={"text": "cosine of the angle to the chosen token's vector"},
        range=[lowest * 1.2, 1.12],
        tickvals=[-1, -0.5, 0, 0.5, 1],
    )
    figure.update_layout(height=100 + 28 * len(rows), margin={"l": 8, "r": 8, "t": 8, "b": 8})
    return figure
