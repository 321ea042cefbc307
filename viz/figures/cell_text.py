"""Text in the cells of a heatmap that is legible on a light and on a dark page.

Plotly chooses the colour of a heatmap's own text as if the page were white, so on a dark page it
writes dark on dark. Here words are in the page's ink, and in the page's own colour on a strong one.
"""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.figures.chart import MONOSPACED, marks
from viz.notation.theme import PAPER

STRONG = 0.55  # of the full colour: on stronger cells, text has the colour of the page
INK = "#000037"  # Streamlit puts the colour of its headings here; elsewhere it is nearly black


def cell_text(
    words: Sequence[Sequence[str]], strength: NDArray[np.floating], *, strong: float = STRONG
) -> list[go.Scatter]:
    """Two traces of text for cells (row, column): on faint and on strong colours.

    strength: how strong each cell's colour is, 0-1; NaN cells stay empty. strong: from where on it
    is strong. words may hold Plotly's tags. Plotly draws them above its heatmaps.
    """
    full = strength > strong
    faint = ~full & ~np.isnan(strength)
    return [
        marks(
            cells[:, 1],
            cells[:, 0],
            mode="text",
            text=[words[row][column] for row, column in cells],
            textfont=MONOSPACED | {"color": colour, "size": 12},
        )
        for cells, colour in ((np.argwhere(faint), INK), (np.argwhere(full), PAPER))
    ]
