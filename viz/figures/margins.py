"""Room for the labels of a heatmap, computed from their number of characters.

Plotly draws all labels, measures each and draws the picture again, which takes longer than all the rest.
Where all letters have one width, their number is enough.
"""

import html
import math
import re
from collections.abc import Sequence

import plotly.graph_objects as go

from viz.notation.labels import drawn_letters

LETTER = 7.3  # pixels of a letter of tick labels: 12 pixels high, of one width
LINE = 15.6  # pixels of a line of them
RIGHT = 8.0  # pixels of that edge
LEFT, TOP = 60.0, 53.0  # pixels of an edge without its labels: tick, gap and a title of one line
TITLE_LINE = 18.2  # pixels of each additional line of a title
PHONE = 270.0  # width of a picture on a phone in pixels
KEY_LETTER, KEY_SAMPLE, KEY_ROW, KEY_EDGE = 6.5, 52.0, 19.0, 30.0  # pixels, of a legend
PLAIN = re.compile(r"[ -~·␣⏎…∅]*")  # letters of that width


def counted_margins(figure: go.Figure) -> dict[str, float] | None:
    """The margins for a heatmap with labels on its left and top. None for other figures, and where labels
    have letters of unknown width: those margins Plotly finds itself."""
    columns, rows = figure.layout.xaxis, figure.layout.yaxis
    if columns.side != "top" or columns.tickangle is None:
        return None
    above, beside = _longest(columns.ticktext), _longest(rows.ticktext)
    if above is None or beside is None:
        return None
    turn = math.radians(abs(columns.tickangle))
    high = above * math.sin(turn) + LINE * math.cos(turn)
    lines = str(columns.title.text or "").count("<br>")
    margins = {"l": LEFT + beside, "t": TOP + high + TITLE_LINE * lines}
    if not any(trace.type == "heatmap" and trace.showscale is not False for trace in figure.data):
        last = (
            _longest(columns.ticktext[-1:]) or 0.0
        )  # no scale stands on the right, for it to lean over
        margins["r"] = RIGHT + last * math.cos(turn)
    return margins


def room_above(figure: go.Figure) -> float:
    """Pixels for a legend above the picture on a phone, 0 without one. Plotly makes room only for the rows
    that the legend has at first, not for those it gets when the page becomes narrower."""
    legend = figure.layout.legend
    names = [trace.name for trace in figure.data if trace.name and trace.showlegend is not False]
    if figure.layout.showlegend is False or legend.yanchor != "bottom" or len(names) < 2:
        return 0.0
    widest = max(KEY_SAMPLE + KEY_LETTER * len(html.unescape(name)) for name in names)
    return KEY_ROW * math.ceil(len(names) / max(1, PHONE // widest)) + KEY_EDGE


def _longest(labels: Sequence[str] | None) -> float | None:
    """The width of the longest label in pixels; None without labels, or if a width is not known."""
    texts = [drawn_letters(label) for label in labels or ()]
    if not texts or not all(PLAIN.fullmatch(text) for text in texts):
        return None
    return LETTER * max(map(len, texts))
