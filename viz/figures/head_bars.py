"""Named parts as bars: what each adds to a sum, the largest first."""

from collections.abc import Sequence

import plotly.graph_objects as go

from viz.notation.labels import plotly_words
from viz.notation.theme import LESS, MASKED, MORE


def part_bars(names: Sequence[str], values: Sequence[float], *, title: str) -> go.Figure:
    """One bar a part, from the top down, red above 0 and blue below, its number at its end."""
    places = list(range(len(names)))
    figure = go.Figure(
        go.Bar(
            x=list(values),
            y=places,
            orientation="h",
            marker={"color": [MORE if value >= 0 else LESS for value in values]},
            text=[f"{value:+.2f}" for value in values],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{x:+.4f}<extra></extra>",
        )
    )
    largest = max((abs(value) for value in values), default=1.0) or 1.0
    low, high = min(0.0, *values), max(0.0, *values)
    figure.update_xaxes(
        title={"text": title},
        range=[low - 0.18 * largest if low < 0 else 0, high + 0.18 * largest],
        zeroline=True,
        zerolinecolor=MASKED,
    )
    figure.update_yaxes(
        tickvals=places,
        ticktext=[plotly_words(name) for name in names],
        range=[len(names) - 0.4, -0.6],
        showgrid=False,
        zeroline=False,
    )
    figure.update_layout(
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        height=22 * len(names) + 70,
        showlegend=False,
    )
    return figure
