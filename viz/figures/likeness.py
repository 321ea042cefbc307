"""How alike one word's vectors are in two sentences, along the states of the stream."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.figures.legend import ABOVE
from viz.notation.theme import MASKED, STREAM


def likeness_lines(
    word: NDArray[np.floating], others: NDArray[np.floating] | None, *, states: Sequence[str]
) -> go.Figure:
    """Cosines (state,) of the word with itself, and the mean with other tokens, if there are any.

    Raises ValueError if states and cosines are not equally many.
    """
    if word.shape != (len(states),):
        raise ValueError(f"{word.shape} cosines for {len(states)} states.")
    places = list(range(len(states)))
    lines = [("the word in both sentences", word, STREAM, "solid")]
    if others is not None:
        lines.append(("the word and the other tokens, on average", others, MASKED, "dot"))
    figure = go.Figure()
    for name, cosines, colour, dash in lines:
        figure.add_trace(
            go.Scatter(
                x=places,
                y=cosines,
                name=name,
                mode="lines+markers",
                line={"color": colour, "dash": dash, "width": 2.5},
                hovertext=list(states),
                hovertemplate="%{hovertext}<br>cosine %{y:.4f}<extra></extra>",
            )
        )
    lowest = min(0.0, float(word.min()), 0.0 if others is None else float(others.min()))
    figure.update_xaxes(
        title={"text": "state of the stream"},
        tickvals=places,
        ticktext=list(states),
        tickangle=-40,
        showgrid=False,
    )
    figure.update_yaxes(title={"text": "cosine similarity"}, range=[lowest * 1.1, 1.06])
    figure.update_layout(
        height=430,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        legend=ABOVE,
    )
    return figure
