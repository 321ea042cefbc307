"""The logit lens: which token each state of the stream would predict, and how surely."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.figures.heatmap import Axis, heatmap
from viz.notation.labels import plotly_label, plotly_words
from viz.notation.numbers import probability

LABEL = 8  # characters of a token inside a cell
CELL, BESIDE = 62, 230  # width of a cell, and of what stands beside the cells, in pixels


def lens_table(
    shares: NDArray[np.float64],
    predicted: Sequence[Sequence[str]],
    *,
    states: Sequence[str],
    tokens: Sequence[str],
    error: float = 0.0,
) -> go.Figure:
    """shares (state, token) as a heatmap of 0-1 with the predicted token written in each cell.

    predicted: the text of the token predicted by each state after each token; it is bold where it
    is what the last state predicts. error: how far rounding may move the logarithm of a share.
    Row = state, the first on top. Column = token read. The cells keep their width, so a narrow page
    has to scroll.
    """
    words = [
        [
            f"<b>{plotly_label(text, LABEL)}</b>" if text == final else plotly_label(text, LABEL)
            for text, final in zip(row, predicted[-1], strict=True)
        ]
        for row in predicted
    ]
    hover = [
        [
            f"{plotly_words(state)}, after {plotly_label(token, 24)}:<br>{plotly_label(text, 24)} with "
            f"probability {probability(share, error)}"
            for token, text, share in zip(tokens, row, given, strict=True)
        ]
        for state, row, given in zip(states, predicted, shares, strict=True)
    ]
    figure = heatmap(
        shares,
        rows=Axis("state of the stream", states, tokens=False),
        columns=Axis("token read", tokens),
        quantity="weight",
        words=words,
        height=130 + 40 * len(states),
    )
    figure.data[-1].update(hovertext=hover, hovertemplate="%{hovertext}<extra></extra>")
    return figure.update_layout(width=BESIDE + CELL * len(tokens))
