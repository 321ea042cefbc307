"""Axes that are only counted, such as dimensions and positions, with few and level numbers."""

import plotly.graph_objects as go

from viz.figures.heatmap import Axis
from viz.figures.token_rows import ColourEnd
from viz.notation.labels import tick_positions

TICKS = 6  # numbers on one axis


def numbered(name: str, count: int) -> Axis:
    """An axis counted from 0."""
    return Axis(name, [str(number) for number in range(count)], tokens=False)


def count_columns(figure: go.Figure, name: str, count: int, end: ColourEnd | None = None) -> None:
    """Numbers the columns of a heatmap; says where its colours end, if that is asked."""
    ticks = tick_positions(count, TICKS)
    figure.update_xaxes(
        title={"text": name if end is None else f"{name}<br>{end.lines}"},
        tickvals=ticks,
        ticktext=[str(tick) for tick in ticks],
        tickangle=0,
    )


def count_rows(figure: go.Figure, count: int) -> None:
    """Numbers the rows of a heatmap."""
    ticks = tick_positions(count, TICKS)
    figure.update_yaxes(tickvals=ticks, ticktext=[str(tick) for tick in ticks])
