"""Where a legend stands: above the picture, on what is drawn nowhere. Plotly makes room for it."""

from typing import Final

ABOVE: Final = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0.0}
