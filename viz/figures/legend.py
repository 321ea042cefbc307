"""Where a legend stands: above the picture, on what is drawn nowhere."""

import html
from typing import Final

import plotly.graph_objects as go

ABOVE: Final = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0.0}
_PHONE = 270.0  # pixels across of a picture on a phone
_LETTER, _SAMPLE, _ROW, _EDGE = 6.5, 52.0, 19.0, 30.0  # pixels


def room_above(figure: go.Figure) -> float:
    """Pixels that a legend above needs on a phone, 0 without one: Plotly makes room for the rows that it has
    at first, and not for those that it gets when a page becomes narrower."""
    legend = figure.layout.legend
    if figure.layout.showlegend is False or legend.yanchor != "bottom":
        return 0.0
    names = [trace.name for trace in figure.data if trace.name and trace.showlegend is not False]
    if len(names) < 2:
        return 0.0
    widest = max(_SAMPLE + _LETTER * len(html.unescape(name)) for name in names)
    abreast = max(1, int(_PHONE // widest))
    return _ROW * -(-len(names) // abreast) + _EDGE
