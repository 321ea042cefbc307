"""One-hot times matrix: every row of the table times 0, but one times 1, and their sum."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.figures.heatmap import Axis, heatmap
from viz.figures.numbered import count_columns, numbered
from viz.figures.token_rows import colour_end, frame_row
from viz.notation.labels import token_label

AROUND = 3  # rows of the table that are drawn on either side
LABEL = 10  # characters of a token


def rows_around(id_: int, vocabulary: int) -> range:
    """The ids whose rows are drawn around one id."""
    return range(max(id_ - AROUND, 0), min(id_ + AROUND + 1, vocabulary))


def look_up(
    table: NDArray[np.floating], texts: Sequence[str], *, id_: int, product: NDArray[np.floating]
) -> go.Figure:
    """Rows of the table (vocabulary, d_model) around an id, each with its factor, and the sum.

    texts: the tokens of `rows_around`. product (d_model,): one-hot times the whole table.
    """
    ids, width = rows_around(id_, len(table)), len(product)
    labels = [
        f"{int(other == id_)} × {other} {token_label(text, LABEL)}"
        for other, text in zip(ids, texts, strict=True)
    ]
    rows = table[ids.start : ids.stop]
    end = colour_end(rows)
    figure = heatmap(
        np.vstack([rows, np.full(width, np.nan), product]),
        rows=Axis("factor × id", [*labels, "", "sum"], tokens=False),
        columns=numbered("dimension", width),
        quantity="stream",
        limit=end.value,
        height=350,
    )
    frame_row(figure, ids.index(id_), width)
    count_columns(figure, "dimension", width, end)
    return figure
