"""Vectors as rows of a heatmap with numbered columns: sums, tables, pairs of rows."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.figures.heatmap import Axis, heatmap
from viz.figures.token_rows import ColourEnd, colour_end, frame_row
from viz.notation.labels import tick_positions, token_label
from viz.notation.theme import QuantityName

Vectors = NDArray[np.floating]
NAMES = {"tokens": "token", "positions": "+ position", "segments": "+ segment"}
AROUND = 3  # rows of a table that are drawn above and below the chosen one
PAIRS = 10  # at most so many pairs of vectors are drawn
DIMENSIONS = 48  # at most so many are drawn: more columns would be too thin to compare
_LABEL = 10  # characters of a token
_TICKS = 6  # numbers on one axis


def summands(parts: Mapping[str, Vectors], total: Vectors) -> go.Figure:
    """parts: vectors (d_model,) by their names in a trace; total (d_model,): what they add up to."""
    rows = [*parts.values(), np.full(len(total), np.nan), total]
    labels = [*(NAMES[name] for name in parts), "", "= sum"]
    end = colour_end(np.array([*parts.values(), total]))
    return _stacked(rows, labels, "vector", end, height=310)


def rows_around(id_: int, vocabulary: int) -> range:
    """The ids whose rows are drawn around one id."""
    return range(max(id_ - AROUND, 0), min(id_ + AROUND + 1, vocabulary))


def look_up(table: Vectors, texts: Sequence[str], *, id_: int, product: Vectors) -> go.Figure:
    """One-hot times the table (vocabulary, d_model): the rows around an id, each with its factor, and
    their sum.

    texts: the tokens of `rows_around`. product (d_model,): one-hot times the whole table.
    """
    ids, width = rows_around(id_, len(table)), len(product)
    labels = [
        f"{int(other == id_)} × {other} {token_label(text, _LABEL)}"
        for other, text in zip(ids, texts, strict=True)
    ]
    drawn = table[ids.start : ids.stop]
    rows = [*drawn, np.full(width, np.nan), product]
    figure = _stacked(rows, [*labels, "", "sum"], "factor × id", colour_end(drawn), height=350)
    frame_row(figure, ids.index(id_), width)
    return figure


def word_pairs(
    first: Vectors, second: Vectors, *, texts: Sequence[str], end: ColourEnd
) -> go.Figure:
    """first, second (token, d_model), token beside token: two rows a token, then a gap.

    end: where the colours end, so that several pictures can share one scale.
    """
    width = min(first.shape[1], DIMENSIONS)
    rows, labels = [], []
    for left, right, text in list(zip(first, second, texts, strict=True))[:PAIRS]:
        label = token_label(text, _LABEL)
        rows += [left[:width], right[:width], np.full(width, np.nan)]
        labels += [f"{label} · first", f"{label} · second", ""]
    height = min(130 + 22 * len(labels), 560)
    return _stacked(rows[:-1], labels[:-1], "token and sentence", end, height=height)


def order_differences(
    ways: Mapping[str, Vectors], *, texts: Sequence[str], end: ColourEnd
) -> go.Figure:
    """ways: for each way to run a model, in a word, how far each token's vector of one sentence lies from
    that of the other, (token, d_model). A row a token, a gap after each way."""
    rows, labels = [], []
    for way, apart in ways.items():
        width = min(apart.shape[1], DIMENSIONS)
        rows += [*apart[:PAIRS, :width], np.full(width, np.nan)]
        labels += [f"{token_label(text, _LABEL)} · {way}" for text in texts[:PAIRS]] + [""]
    height = min(130 + 24 * len(labels), 560)
    name = "token and setting"
    return _stacked(rows[:-1], labels[:-1], name, end, height=height, quantity="difference")


def position_map(table: Vectors, *, column_name: str, value_name: str) -> go.Figure:
    """table (position, column): one row a position."""
    hover = f"position %{{y}}, {column_name} %{{x}}<br>{value_name} %{{z:.4f}}"
    return _counted(table, "position", column_name, hover, end=colour_end(table))


def likeness_map(alike: Vectors) -> go.Figure:
    """alike (position, position) from -1 to 1."""
    hover = "positions %{y} and %{x}<br>likeness %{z:.4f}"
    return _counted(alike, "position", "position", hover, quantity="score", square=True)


def _stacked(
    rows: Sequence[Vectors],
    labels: Sequence[str],
    name: str,
    end: ColourEnd,
    *,
    height: int,
    quantity: QuantityName = "stream",
) -> go.Figure:
    """Vectors one below the other."""
    values = np.array(rows)
    figure = heatmap(
        values,
        rows=Axis(name, labels, tokens=False),
        columns=_numbered("dimension", values.shape[1]),
        quantity=quantity,
        limit=end.value,
        height=height,
    )
    return figure.update_xaxes(_count("dimension", values.shape[1], end))


def _counted(
    values: Vectors,
    row: str,
    column: str,
    hover: str,
    *,
    end: ColourEnd | None = None,
    quantity: QuantityName = "stream",
    square: bool = False,
) -> go.Figure:
    """A large table with numbered rows and columns."""
    figure = heatmap(
        values,
        rows=_numbered(row, len(values)),
        columns=_numbered(column, values.shape[1]),
        quantity=quantity,
        limit=end.value if end else 1.0,
        height=440,
        square=square,
    )
    figure.data[-1].update(hovertext=None, hovertemplate=f"{hover}<extra></extra>")
    figure.update_xaxes(_count(column, values.shape[1], end))
    return figure.update_yaxes(_count(row, len(values)))


def _numbered(name: str, count: int) -> Axis:
    return Axis(name, [str(number) for number in range(count)], tokens=False)


def _count(name: str, count: int, end: ColourEnd | None = None) -> dict[str, object]:
    """A few numbers along an axis and, below its name, where the colours end."""
    ticks = tick_positions(count, _TICKS)
    return {
        "title": {"text": name if end is None else f"{name}<br>{end.lines}"},
        "tickvals": ticks,
        "ticktext": [str(tick) for tick in ticks],
        "tickangle": 0,
    }
