"""A heatmap with a row for each token, and a mark beside each row that chooses it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from viz.figures.chart import marks
from viz.figures.heatmap import Axis, Matrix, heatmap
from viz.notation.labels import LABELS, tick_positions
from viz.notation.theme import MASKED, QuantityName, rgba

MARKED = 64  # up to so many rows each has a mark; more marks would touch
LYING = 60  # up to so many letters, gaps included, labels are written level
WIDE_LABELS = 8  # labels of many dimensions: so few that they can be written level
OUTLIERS = 2.0  # the colours end early if the largest value is so many times a high percentile


@dataclass(frozen=True)
class ColourEnd:
    """Where the colours of a picture end, and how many values lie beyond."""

    value: float
    beyond: int
    total: int
    signed: bool = True  # whether the scale has a negative end too

    @property
    def words(self) -> str:
        """The note on the picture."""
        if not self.signed:
            return f"the colour scale goes from 0 to {self.value:.3g}"
        if not self.beyond:
            return f"the colour scale ends at ±{self.value:.3g}, the largest value"
        return (
            f"the colour scale ends at ±{self.value:.3g}; {self.beyond:,} of {self.total:,} "
            "values lie beyond it"
        )

    @property
    def short(self) -> str:
        """The same in a few words, where several kinds of rows have colours of their own."""
        beyond = f", {self.beyond:,} values beyond" if self.beyond else ""
        return f"colours end at ±{self.value:.3g}{beyond}"

    @staticmethod
    def several(ends: Iterable["ColourEnd"]) -> str:
        """The note on a picture whose parts have scales of their own."""
        beyond = sum(end.beyond for end in ends)
        return f";<br>{beyond:,} values lie beyond the ends of theirs" if beyond else ""

    @property
    def lines(self) -> str:
        """The same in two lines, short enough for a phone."""
        return self.words.replace("; ", ";<br>").replace(", ", ",<br>")


def colour_end(values: Matrix, percentile: float = 99.5) -> ColourEnd:
    """The largest |value|, or this percentile if a few large values would leave all others pale."""
    sizes = np.abs(values)
    largest, usual = float(sizes.max()), float(np.percentile(sizes, percentile))
    end = usual if 0 < usual * OUTLIERS < largest else largest
    return ColourEnd(end, int((sizes > end).sum()), sizes.size)


def token_rows(
    values: Matrix,
    *,
    tokens: Sequence[str],
    columns: Axis,
    quantity: QuantityName,
    end: ColourEnd | None = None,
    chosen: int | None = None,
) -> go.Figure:
    """values (token, column) as a heatmap that says where its colours end.

    chosen: the row that is framed; with it each of up to 64 rows gets a mark on its left that can
    be clicked: trace "marks", whose points are numbered as the rows.
    """
    end = end or colour_end(values)
    rows = Axis("token", tokens)
    figure = heatmap(values, rows=rows, columns=columns, quantity=quantity, limit=end.value)
    width = values.shape[1]
    cells = figure.data[-1]
    if cells.hovertext is None:
        cells.hovertemplate = "token %{y}, %{x}<br>%{z:.4f}<extra></extra>"
    axis = figure.layout.xaxis
    axis.title.text = f"{columns.name}<br>{end.lines}"
    if width > LABELS:
        ticks = tick_positions(width, WIDE_LABELS)
        axis.tickvals, axis.ticktext = ticks, [columns.label(tick) for tick in ticks]
        axis.tickangle = 0
    elif width * (1 + max(len(columns.label(column)) for column in range(width))) > LYING:
        axis.tickangle = -60
    if chosen is not None:
        frame_row(figure, chosen, width)
        if len(tokens) <= MARKED:
            _add_marks(figure, rows, chosen, width)
    return figure


def frame_row(figure: go.Figure, row: int, width: int, *, inset: float = 0.0) -> None:
    """A frame around one row of so many columns."""
    top, bottom = row - 0.5 + inset, row + 0.5 - inset
    line = {"color": MASKED, "width": 2}
    figure.add_shape(type="rect", x0=-0.5, x1=width - 0.5, y0=top, y1=bottom, line=line)


def _add_marks(figure: go.Figure, rows: Axis, chosen: int, width: int) -> None:
    gutter = 0.07 * width
    places = list(range(len(rows.labels)))
    steady = {"marker": {"opacity": 1}}
    look = {
        "size": 11 if len(places) <= 32 else 7,
        "color": [MASKED if row == chosen else rgba(MASKED, 0.15) for row in places],
        "line": {"color": MASKED, "width": 1.5},
    }
    figure.add_trace(
        marks(
            [-0.5 - gutter / 2] * len(places),
            places,
            name="marks",
            marker=look,
            selected=steady,
            unselected=steady,
            text=[f"{row} {rows.label(row)}" for row in places],
            hover="choose token %{text}",
        )
    )
    figure.layout.xaxis.range = [-0.5 - gutter, width - 0.5]
    figure.layout.clickmode, figure.layout.dragmode = "event+select", False
