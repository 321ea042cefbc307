"""The logit lens: which token each state of the stream would predict, and how surely."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.axes import plotly_label, plotly_words
from viz.figures.heatmap import Axis, heatmap

LABEL = 9  # characters of a token inside a cell


def lens_table(
    shares: NDArray[np.float64],
    predicted: Sequence[Sequence[str]],
    *,
    states: Sequence[str],
    tokens: Sequence[str],
) -> go.Figure:
    """shares (state, token) as a heatmap of 0-1 with the predicted token written in each cell.

    predicted: the text of the token predicted by each state after each token; it is bold where it
    is what the last state predicts. Row = state, the first on top. Column = token read.
    """
    figure = heatmap(
        shares,
        rows=Axis("state of the stream", states, tokens=False),
        columns=Axis("token read", tokens),
        quantity="weight",
        height=130 + 40 * len(states),
    )
    last = predicted[-1]
    figure.data[-1].update(
        text=[
            [
                _bold(plotly_label(text, LABEL), text == last[place])
                for place, text in enumerate(row)
            ]
            for row in predicted
        ],
        texttemplate="%{text}",
        textfont={"family": "monospace", "size": 12},
        hovertext=[
            [
                f"{plotly_words(state)}, after {plotly_label(token, 24)}:"
                f"<br>{plotly_label(text, 24)}"
                for token, text in zip(tokens, row, strict=True)
            ]
            for state, row in zip(states, predicted, strict=True)
        ],
        hovertemplate="%{hovertext} with probability %{z:.4f}<extra></extra>",
    )
    return figure


def _bold(label: str, bold: bool) -> str:
    return f"<b>{label}</b>" if bold else label
