"""The vectors of the same tokens in two sentences, one under the other."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.figures.heatmap import Axis, heatmap
from viz.figures.numbered import count_columns, numbered
from viz.figures.token_rows import ColourEnd
from viz.notation.labels import token_label

LABEL = 10  # characters
PAIRS = 10  # drawn at most
DIMENSIONS = 48  # drawn at most: more, and single columns are too thin to compare


def word_pairs(
    first: NDArray[np.floating],
    second: NDArray[np.floating],
    *,
    texts: Sequence[str],
    end: ColourEnd,
) -> go.Figure:
    """first, second (token, d_model), token beside token: two rows a token, then a gap.

    end: where the colours end, so that several pictures can share one scale.
    """
    width = min(first.shape[1], DIMENSIONS)
    values, labels = [], []
    for left, right, text in list(zip(first, second, texts, strict=True))[:PAIRS]:
        label = token_label(text, LABEL)
        values += [left[:width], right[:width], np.full(width, np.nan)]
        labels += [f"{label} · first", f"{label} · second", ""]
    figure = heatmap(
        np.array(values[:-1]),
        rows=Axis("token and sentence", labels[:-1], tokens=False),
        columns=numbered("dimension", width),
        quantity="stream",
        limit=end.value,
        height=min(130 + 22 * len(labels), 560),
    )
    count_columns(figure, "dimension", width, end)
    return figure
