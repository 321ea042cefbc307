"""Room for labels, numbers, square cells and the legend of a figure, computed from the letters of its words.

Plotly draws all labels, measures each and draws the figure again, which takes longer than all the rest, and
cells are square only in a figure whose margins are known. Where letters have one width, their number is
enough, and others have the room of the widest. Only the browser knows how wide a figure is, so rules of CSS
leave out what does not fit a narrow one; the numbers stay on hover and in the table.
"""

import html
import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, cast

import numpy as np
import plotly.graph_objects as go

from viz.figures.chart import SLANTED
from viz.notation.labels import drawn_letters
from viz.notation.theme import MASKED, rgba

LETTER = 7.3  # pixels of a letter of tick labels: 12 pixels high, of one width
LINE = 15.6  # pixels of a line of them
RIGHT = 8.0  # pixels of that edge
LEFT, TOP = 60.0, 53.0  # pixels of an edge without its labels: tick, gap and a title of one line
TITLE_LINE = 18.2  # pixels of each additional line of a title
SCALE_BELOW = 190.0  # width of a colour scale below the cells, with its last number
PHONE = 270.0  # width of a figure on a phone in pixels
KEY_LETTER, KEY_SAMPLE, KEY_ROW, KEY_EDGE = 6.5, 52.0, 19.0, 30.0  # pixels, of a legend
LETTERS = 13  # pixels of letters that have no size of their own
PER_SIZE = 0.61  # width of a letter of one width, for each pixel of its size
_AROUND_NUMBER, _AROUND_LABEL, _LINE = 3.0, 5.0, 13.0  # pixels
_NUMBER = 26.0  # pixels of a number above an upright bar
_EDGE, _TITLE, _SCALE = 8.0, 30.0, 62.0  # pixels: of an edge, an upright title, a colour scale
_LABELS_EVERY = (2, 4, 8, 16, 32)
# Letters of one width: Latin, Greek and Cyrillic (the face has them, or another one of its width); dashes,
# quotes and dots; pictures of blanks and ends of lines; the sign of an empty token.
_ONE_WIDTH = {*range(0x0530), *range(0x2010, 0x2070), *range(0x2400, 0x2440), ord("∅")}
_FULL, _WIDEST = 1.65, 2.1  # a letter of Chinese, Japanese or Korean; any other of another face
_WITHOUT_WIDTH = {"Mn", "Me", "Cf"}  # drawn over the letter before it, or not at all


@lru_cache(maxsize=4096)
def letters_wide(drawn: str) -> float:
    """The width of what one sees when Plotly draws this, in letters of one width, rounded up."""
    letters = drawn_letters(drawn)
    if letters.isascii():
        return len(letters)
    width = 0.0
    for letter in letters:
        category = unicodedata.category(letter)
        if category in _WITHOUT_WIDTH:
            continue
        if ord(letter) in _ONE_WIDTH:
            width += 1
        else:
            is_full = unicodedata.east_asian_width(letter) in "WF" and category == "Lo"
            width += _FULL if is_full else _WIDEST
    return width


def _longest(labels: Sequence[str] | None) -> float:
    """The width of the longest label in pixels; 0 without labels."""
    return LETTER * max(map(letters_wide, labels or ()), default=0)


def height_of_labels(labels: Sequence[str] | None, angle: float) -> float | None:
    """Pixels above the cells, with the title. None without labels."""
    turn = math.radians(abs(angle))
    if not labels:
        return None
    return TOP + _longest(labels) * math.sin(turn) + LINE * math.cos(turn)


LARGEST = 64  # pixels of a cell
TALLEST = 620  # pixels of a figure
ABOVE, BELOW = 120, 54  # pixels above cells that have no labels; of the scale below them
FLATTEST, STEEPEST = 0.25, 2.0  # height by width of all cells: beyond, they are not quite square
LARGE = 13  # size of the numbers in the cells: smaller ones cannot be read
SCALE: dict[str, object] = {  # below the cells, at their left
    **{"orientation": "h", "len": 170, "lenmode": "pixels"},
    **{"x": 0, "xanchor": "left", "xpad": 0, "y": 0, "yanchor": "top", "ypad": 8},
}
MARGIN: dict[str, object] = {"l": 8, "r": 8, "t": 8, "b": BELOW, "pad": 0}
_OUTLINE: dict[str, object] = {"showline": True, "mirror": True, "linecolor": rgba(MASKED, 0.5)}
_AROUND, _BETWEEN = 4, 5  # pixels around a number, and between labels

AxisLayout = dict[str, object]


@dataclass(frozen=True)
class Squares:
    """The layout of square cells in a figure that is wide enough, as the explorer draws them.

    side: a cell's width in pixels. steep: its height by its width. height: of the figure, in pixels.
    """

    side: float
    steep: float
    angle: int  # of the labels above the columns, in degrees
    height: int

    @staticmethod
    def of(shape: tuple[int, int], above: AxisLayout, down: AxisLayout) -> "Squares":
        """The layout of so many rows and columns. above, down: their axes."""
        rows, columns = shape
        share = float(np.clip(rows / columns, FLATTEST, STEEPEST))
        steep = share * columns / rows
        over, beside = (cast("list[str]", axis["ticktext"]) for axis in (above, down))
        on_a_phone = min(LARGEST, (PHONE - LEFT - _longest(beside)) / columns)
        angle = 0 if _longest(over) + _BETWEEN <= on_a_phone else SLANTED
        around = (height_of_labels(over, angle) or ABOVE) + BELOW
        side = min(LARGEST, LARGEST / steep, (TALLEST - around) / (rows * steep))
        return Squares(side, steep, angle, round(side * steep * rows + around))

    def number_size(self, words: Sequence[Sequence[str]]) -> float:
        """The size of letters if all words fit their cells; else 0."""
        longest = max((len(drawn_letters(word)) for row in words for word in row), default=0)
        fits = (self.side - _AROUND) / (max(longest, 1) * PER_SIZE)
        return LARGE if min(fits, self.side * self.steep / 1.3) >= LARGE else 0

    def axes(self, above: AxisLayout, down: AxisLayout) -> tuple[AxisLayout, AxisLayout]:
        """The axes of such cells, which stand at the left where there is more room."""
        both = _OUTLINE | {"constrain": "domain"}
        across = both | {"constraintoward": "left", "tickangle": self.angle}
        return above | across, down | both | {"scaleanchor": "x", "scaleratio": self.steep}


def counted_margins(figure: go.Figure) -> dict[str, float] | None:
    """The margins for a heatmap with labels on its left and top. None for other figures: those margins Plotly
    finds itself."""
    columns, rows = figure.layout.xaxis, figure.layout.yaxis
    if columns.side != "top" or columns.tickangle is None or not rows.ticktext:
        return None
    above = height_of_labels(columns.ticktext, columns.tickangle)
    if above is None:
        return None
    lines = str(columns.title.text or "").count("<br>")
    top = max(above + TITLE_LINE * lines, (figure.layout.meta or {}).get("above", 0.0))
    margins = {"l": LEFT + _longest(rows.ticktext), "t": top}
    if not _has_scale_beside(figure):  # for the last label to lean over
        last = _longest(columns.ticktext[-1:])
        margins["r"] = RIGHT + last * math.cos(math.radians(columns.tickangle))
        if rows.scaleratio is not None:  # few cells are narrower than the scale below them
            around = margins["t"] + figure.layout.margin.b
            wide = (figure.layout.height - around) / _height_by_width(figure)
            margins["r"] = max(margins["r"], SCALE_BELOW - wide)
    return margins


def aligned_tops(figures: Sequence[go.Figure]) -> None:
    """Gives heatmaps that stand side by side one room above their cells, that of the longest labels, and one
    size of cells, the smallest."""
    margins = [(one, margin) for one in figures if (margin := counted_margins(one))]
    top = max((margin["t"] for _, margin in margins), default=0.0)
    sides = [_side_of_cells(figure, margin["t"]) for figure, margin in margins]
    cells = [
        (figure.layout.height - margin["t"] - figure.layout.margin.b) * min(sides) / side
        for (figure, margin), side in zip(margins, sides, strict=True)
    ]
    for (figure, margin), high in zip(margins, cells, strict=True):
        around = margin["t"] + figure.layout.margin.b
        figure.layout.meta = {"above": top, "share": high / max(cells)}
        figure.layout.xaxis.title.standoff = 4 + top - margin["t"]
        figure.layout.height = round(high + around + top - margin["t"])


def _side_of_cells(figure: go.Figure, above: float) -> float:
    """The height of a cell in pixels. above: pixels above the first row."""
    bottom, top = figure.layout.yaxis.range
    height: float = figure.layout.height - above - figure.layout.margin.b
    return height / abs(top - bottom)


def _has_scale_beside(figure: go.Figure) -> bool:
    """Whether a colour scale stands on the right."""
    return any(
        trace.type == "heatmap"
        and trace.showscale is not False
        and trace.colorbar.orientation != "h"
        for trace in figure.data
    )


def room_above(figure: go.Figure) -> float:
    """Pixels for a legend above the figure on a phone, 0 without one. Plotly makes room only for the rows
    that the legend has at first, not for those it gets when the page becomes narrower."""
    names, widest = _legend_above(figure)
    return KEY_ROW * math.ceil(names / max(1, PHONE // widest)) + KEY_EDGE if names else 0.0


def _legend_above(figure: go.Figure) -> tuple[int, float]:
    """How many names the legend above the figure has, 0 without one, and the width of the widest."""
    legend = figure.layout.legend
    names = [trace.name for trace in figure.data if trace.name and trace.showlegend is not False]
    if figure.layout.showlegend is False or legend.yanchor != "bottom" or len(names) < 2:
        return 0, 1.0
    return len(names), max(KEY_SAMPLE + KEY_LETTER * len(html.unescape(name)) for name in names)


def narrow_rules(figure: go.Figure, place: str) -> str:
    """CSS rules for the figure in the container that `place` selects; empty if everything always fits."""
    # The width beside the cells: labels and title on the left, a colour scale on the right.
    rows, margin = figure.layout.yaxis, figure.layout.margin
    labels = max((_width(label, LETTERS) for label in rows.ticktext or ()), default=2 * LETTER)
    counted = (margin.l or 0) if rows.automargin is False else 0
    left = counted or labels + _EDGE + (_TITLE if rows.title.text else 0.0)
    beside = left + (margin.r or _EDGE) + (_SCALE if _has_scale_beside(figure) else 0.0)
    rules = [
        _size_of_squares(figure, place),
        _legend_of_fewer_rows(figure, place, beside),
        _numbers(figure, place, beside),
    ]
    for name in figure.layout:
        if re.fullmatch(r"xaxis\d*", name):
            rules += _columns(
                figure.layout[name], f"x{name.removeprefix('xaxis')}tick", place, beside
            )
    if _has_squares_of_known_size(figure):
        rules += _rows(figure, place, beside)
    written = "".join(filter(None, rules))
    return f"{place}{{container-type:inline-size}}{written}" if written else ""


def _size_of_squares(figure: go.Figure, place: str) -> str:
    """The width and height at which cells are square. Streamlit draws a figure as large as its place."""
    margin = figure.layout.margin
    if not _has_squares_of_known_size(figure):
        return ""
    share = _height_by_width(figure)
    beside, above = margin.l + margin.r, margin.t + margin.b
    # In the lecture view it ends on the screen: viz/shell/keys/js/lecture.js. Beside a figure with more rows,
    # one of fewer takes its part.
    part = (figure.layout.meta or {}).get("share", 1.0)
    top = f"{above:.1f}px"
    left = f"({top} + (var(--room,9999px) - {top})*{part:.4f})"
    tallest = f"min({figure.layout.height}px,{left})"
    return (
        f"{place}{{flex-basis:auto!important;height:auto!important;"
        f"max-width:calc({beside:.1f}px + ({tallest} - {above:.1f}px)/{share:.5f})}}"
        f"{place}>*{{height:min({tallest},calc({share:.5f}*(100cqi - {beside:.1f}px) + {above:.1f}px))}}"
    )


def _height_by_width(figure: go.Figure) -> float:
    """Of all cells together."""
    rows, columns = figure.layout.yaxis, figure.layout.xaxis
    (bottom, top), (left, right) = rows.range, columns.range
    share: float = rows.scaleratio * abs(top - bottom) / abs(right - left)
    return share


def _has_squares_of_known_size(figure: go.Figure) -> bool:
    rows = figure.layout.yaxis
    return rows.scaleratio is not None and rows.automargin is False


@contextmanager
def without_anchor(figure: go.Figure) -> Iterator[None]:
    """Meanwhile the shape of the figure's cells is left to those rules, where there are such. To make a copy
    without it takes Plotly longer than to make the figure. The figure itself changes: no figure is shared
    between visitors.

    Where Plotly sees to it, it writes the narrower axes into the layout that it was given, and Streamlit
    gives it that layout again when the place has another size: the figure shrinks each time.
    """
    shaped = [(figure.layout.yaxis, name) for name in ("scaleanchor", "scaleratio", "constrain")]
    shaped += [(figure.layout.xaxis, name) for name in ("constrain", "constraintoward")]
    if not _has_squares_of_known_size(figure):
        shaped = []
    before = [axis[name] for axis, name in shaped]
    for axis, name in shaped:
        axis[name] = None
    try:
        yield
    finally:
        for (axis, name), value in zip(shaped, before, strict=True):
            axis[name] = value


def _legend_of_fewer_rows(figure: go.Figure, place: str, beside: float) -> str:
    """Takes away, where the figure is wide, the room for rows that the legend has on a phone alone."""
    names, widest = _legend_above(figure)
    if not names or figure.layout.yaxis.automargin is False:  # counted margins have no such room
        return ""
    most = math.ceil(names / max(1, PHONE // widest))
    # What is taken away is clipped too: it would lie on the buttons above, and catch what is clicked there.
    fit = f"{place}{{flex-basis:auto!important;height:auto!important;overflow:clip}}"
    rules = [fit] if most > 1 else []
    for rows in range(most - 1, 0, -1):
        width = math.ceil(names / rows) * widest + beside
        spare = KEY_ROW * (most - rows)
        rules.append(
            f"@container (min-width:{width:.0f}px){{{place}>*{{margin-top:-{spare:.0f}px;"
            f"height:calc(100% + {spare:.0f}px)}}}}"  # Streamlit makes it as high as what is left
        )
    return "".join(rules)


def _numbers(figure: go.Figure, place: str, beside: float) -> str:
    """Hides all numbers of the cells at once: if only some were hidden, those cells would seem to be 0."""
    needed = 0.0
    for trace in figure.data:
        if trace.type == "scatter" and trace.mode == "text" and trace.text is not None:
            axis = figure.layout[(trace.xaxis or "x").replace("x", "xaxis")]
            if axis.range is None:
                continue
            size = trace.textfont.size or LETTERS
            longest = max((_width(word, size) for word in trace.text), default=0.0)
            units = (trace.meta or {}).get("units", 1.0)  # of the axis, that a word has room in
            needed = max(needed, _plot_width(axis, longest + _AROUND_NUMBER, units))
        if trace.type == "bar" and trace.orientation != "h" and trace.texttemplate:
            needed = max(needed, len(trace.x) * _NUMBER)
    return _hidden(place, ":is(.textpoint,.bartext)", needed + beside) if needed else ""


def _columns(axis: Any, ticks: str, place: str, beside: float) -> Iterator[str]:
    """Keeps only every second label, every fourth, … where they would touch. ticks: their class."""
    if not axis.ticktext or not axis.tickvals or len(axis.ticktext) < 2:
        return
    size = axis.tickfont.size or LETTERS
    turn = math.radians(abs(axis.tickangle or 0))
    longest = max(_width(label, size) for label in axis.ticktext) + _AROUND_LABEL
    apart = min(longest, _LINE / math.sin(turn)) if turn else longest
    places = np.log10(axis.tickvals) if axis.type == "log" else axis.tickvals
    step = min(abs(after - before) for before, after in pairwise(places))
    every = 1
    for more in _LABELS_EVERY:
        if every >= len(axis.ticktext):
            return
        width, nth = _plot_width(axis, apart / every, step) + beside, f"{more}n + 1 of g.{ticks}"
        yield _hidden(place, f"g.{ticks}:not(:nth-child({nth}))", width)
        every = more


def _rows(figure: go.Figure, place: str, beside: float) -> Iterator[str]:
    """The same for the rows of cells that are square, and so lower where they are narrower."""
    down = figure.layout.yaxis
    if len(down.ticktext or ()) < 2:
        return
    step = min(abs(after - before) for before, after in pairwise(down.tickvals)) * down.scaleratio
    every = 1
    for more in _LABELS_EVERY:
        width = _plot_width(figure.layout.xaxis, _LINE / every, step) + beside
        nth = f"{more}n + 1 of g.ytick"
        yield _hidden(place, f"g.ytick:not(:nth-child({nth}))", width)
        every = more


def _plot_width(axis: Any, room: float, units: float) -> float:
    """The width of the plot at which so many units of the axis have so many pixels."""
    low, high = axis.range or (min(axis.tickvals) - 0.5, max(axis.tickvals) + 0.5)
    start, end = axis.domain or (0.0, 1.0)
    return room / units * abs(high - low) / (end - start)


def _width(label: object, size: float) -> float:
    return max(map(letters_wide, str(label).split("<br>"))) * size * PER_SIZE


def _hidden(place: str, what: str, width: float) -> str:
    """Hides it below this width."""
    return f"@container (max-width:{width:.0f}px){{{place} {what}{{display:none}}}}"
