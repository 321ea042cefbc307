"""What a model expects next: bars of probabilities, before and after a change."""

from collections.abc import Sequence

import plotly.graph_objects as go

from viz.figures.legend import ABOVE
from viz.notation.labels import plotly_label
from viz.notation.theme import MASKED, WEIGHT


def next_tokens(
    labels: Sequence[str],
    before: Sequence[float],
    after: Sequence[float] | None,
    *,
    decimals: int = 4,
) -> go.Figure:
    """One row a token, the most probable on top; `after` None draws the unchanged model alone. decimals: of
    the numbers on hovering; the bars bear three at most."""
    pairs = [("unchanged", before, MASKED if after is not None else WEIGHT)]
    if after is not None:
        pairs.append(("changed", after, WEIGHT))
    positions = list(range(len(labels)))
    layout = {  # in one piece: a figure that is changed step by step takes five times as long
        "yaxis": {
            "tickvals": positions,
            "ticktext": [plotly_label(label, 18) for label in labels],
            "tickfont": {"family": "monospace"},
            "autorange": "reversed",
        },
        "xaxis": {"title": {"text": "probability"}, "range": [0, 1.12], "tickvals": [0, 0.5, 1]},
        "barmode": "group",
        "height": 90 + 44 * len(labels),
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "legend": ABOVE | {"traceorder": "normal"},
        "showlegend": after is not None,
    }
    return go.Figure([_bars(positions, *pair, decimals) for pair in pairs], layout)


def _bars(
    positions: Sequence[int], name: str, shares: Sequence[float], colour: str, decimals: int
) -> go.Bar:
    return go.Bar(
        y=positions,
        x=list(shares),
        name=name,
        orientation="h",
        marker={"color": colour},
        texttemplate=f"%{{x:.{min(decimals, 3)}f}}",
        textposition="outside",
        cliponaxis=False,
        hovertemplate=f"{name} %{{x:.{decimals}f}}<extra></extra>",
    )
