"""One token's vector, its position's vector, and their sum, one row each."""

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.figures.heatmap import Axis, heatmap
from viz.figures.numbered import count_columns, numbered
from viz.figures.token_rows import colour_end

NAMES = {"tokens": "token", "positions": "+ position", "segments": "+ segment"}


def summands(parts: Mapping[str, NDArray[np.floating]], total: NDArray[np.floating]) -> go.Figure:
    """parts: vectors (d_model,) by their names in a trace; total (d_model,): what they add up to."""
    width = len(total)
    rows = [*parts.values(), np.full(width, np.nan), total]
    end = colour_end(np.array([*parts.values(), total]))
    figure = heatmap(
        np.array(rows),
        rows=Axis("vector", [*(NAMES[name] for name in parts), "", "= sum"], tokens=False),
        columns=numbered("dimension", width),
        quantity="stream",
        limit=end.value,
        height=310,
    )
    count_columns(figure, "dimension", width, end)
    return figure
