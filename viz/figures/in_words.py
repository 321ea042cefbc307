"""A picture in one or two sentences, for those who cannot see it. Computed from what is drawn."""

import re
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.notation.labels import drawn_letters
from viz.notation.numbers import counted, signed
from viz.notation.words import sentences_of

say = sentences_of("figures.in_words")

LISTED = 4  # at most so many lines or bars are described one by one
_BREAK = re.compile(r"<br\s*/?>")


def in_words(figure: go.Figure) -> str:
    """What the figure shows: the words in its `layout.meta`, or else its kind, its axes, and its
    largest and smallest numbers."""
    if figure.layout.meta is not None:
        return _plain(str(figure.layout.meta))
    traces = [trace for trace in figure.data if trace.visible is not False]
    heatmaps = [trace for trace in traces if trace.type == "heatmap"]
    if heatmaps:
        return _heatmap(figure, heatmaps[-1])
    bars = [trace for trace in traces if trace.type == "bar"]
    if bars:
        return _bars(figure, bars)
    return _lines(figure, [trace for trace in traces if trace.type == "scatter"])


def _heatmap(figure: go.Figure, drawn: go.Heatmap) -> str:
    values = np.asarray(drawn.z, dtype=np.float64)
    is_open = np.isfinite(values)
    rows, columns = _name(figure.layout.yaxis) or "row", _name(figure.layout.xaxis) or "column"
    said = say(
        "heatmap_cells_rows",
        first_values=values.shape[0],
        values=values.shape[1],
        rows=rows,
        columns=columns,
    )
    if not is_open.any() or drawn.hoverinfo == "skip":
        return said
    row, column = np.unravel_index(np.where(is_open, values, -np.inf).argmax(), values.shape)
    place = _place(figure, drawn, int(row), int(column))
    said += f" Largest {_number(values[row, column])} at {place}; smallest "
    said += f"{_number(values[is_open].min())}."
    if is_open.all():
        return said
    closed = int((~is_open).sum())
    forbidden = any("masked" in str(trace.hovertemplate) for trace in figure.data)
    are = f"{'is' if closed == 1 else 'are'} {'masked' if forbidden else 'left empty'}"
    return f"{said} {counted(closed, 'cell')} {are}."


def _place(figure: go.Figure, drawn: go.Heatmap, row: int, column: int) -> str:
    """Row and column of a cell, as hovering shows them, or else from the labels of the axes."""
    if drawn.hovertext is not None and not isinstance(drawn.hovertext, str):
        return _plain(str(drawn.hovertext[row][column]))
    places = (
        row * int(drawn.dy or 1),
        column * int(drawn.dx or 1),
    )  # where blocks share a cell, its first
    return f"{_label(figure.layout.yaxis, places[0])}, {_label(figure.layout.xaxis, places[1])}"


def _bars(figure: go.Figure, bars: Sequence[go.Bar]) -> str:
    parts = []
    for trace in bars[:LISTED]:
        across = trace.orientation == "h"
        lengths, places = _pairs(trace.x, trace.y) if across else _pairs(trace.y, trace.x)
        if not len(lengths):
            continue
        axis = _axis(figure, trace, "y" if across else "x")
        at = int(lengths.argmax())
        name = _name(_axis(figure, trace, "x" if across else "y")) or _plain(trace.name or "")
        parts.append(
            say(
                "bars_largest",
                value=name or "value",
                lengths=len(lengths),
                number=_number(lengths[at]),
                label=_label(axis, places[at]),
            )
        )
    return f"Bars. {'; '.join(parts)}." if parts else "Bars without a value."


def _lines(figure: go.Figure, lines: Sequence[go.Scatter]) -> str:
    across, up = _name(figure.layout.xaxis), _name(figure.layout.yaxis)
    parts = []
    for trace in lines[:LISTED]:
        heights, _ = _pairs(trace.y, trace.x)
        if trace.mode != "text" and len(heights) > 1:
            name = f"{_plain(trace.name)}: " if trace.name else ""
            parts.append(
                say(
                    "points_between",
                    name=name,
                    heights=len(heights),
                    number=_number(heights[0]),
                    heights_number=_number(heights[-1]),
                    heights_number_2=_number(heights.min()),
                    heights_number_3=_number(heights.max()),
                )
            )
    axes = f", {up or 'values'} over {across or 'positions'}"
    more = f"; and {len(lines) - LISTED} more" if len(lines) > LISTED else ""
    return f"Lines{axes}. {'; '.join(parts)}{more}." if parts else f"A drawing{axes}."


def _number(value: float) -> str:
    return signed(f"{value:.4g}")


def _pairs(
    numbers: Sequence[float | None] | None, places: Sequence[object] | None
) -> tuple[NDArray[np.float64], list[object]]:
    """The finite numbers, and the place of each."""
    given = np.array([] if numbers is None else numbers, dtype=np.float64)
    finite = np.isfinite(given)
    where = range(len(given)) if places is None else places
    return given[finite], [place for place, here in zip(where, finite, strict=False) if here]


def _axis(figure: go.Figure, trace: go.Bar, side: str) -> go.layout.XAxis:
    """The axis that a trace is drawn on."""
    name = getattr(trace, f"{side}axis") or side
    return figure.layout[f"{side}axis{name[1:]}"]


def _name(axis: go.layout.XAxis) -> str:
    """An axis's title without the note on colours below it."""
    return _plain((axis.title.text or "").partition("<br>colours")[0])


def _label(axis: go.layout.XAxis, place: object) -> str:
    """The label at a place of an axis, or else the place itself."""
    ticks = [] if axis.tickvals is None else list(axis.tickvals)
    if place in ticks and axis.ticktext is not None:
        return _plain(str(axis.ticktext[ticks.index(place)]))
    return _plain(str(place))


def _plain(drawn: str) -> str:
    return drawn_letters(_BREAK.sub(": ", drawn))
