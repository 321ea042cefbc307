"""Vectors as rows of a heatmap: of tokens, tables, sums, pairs, of heads side by side and times a matrix.
Each figure says where its colours end."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.figures.chart import (
    BARE,
    CLICKED,
    LABEL,
    MONOSPACED,
    SLANTED,
    Axis,
    chart,
    frame,
    marks,
    note,
    numbered,
    titled,
)
from viz.figures.head_tiles import hue_of
from viz.figures.heatmap import heatmap
from viz.figures.room import SCALE_BELOW
from viz.notation.labels import (
    LABELS,
    dimension_ticks,
    plotly_words,
    tick_positions,
    token_label,
)
from viz.notation.numbers import signed
from viz.notation.theme import INK, MASKED, PAPER, QUANTITIES, QuantityName, rgba, vector_scale
from viz.notation.words import sentences_of

say = sentences_of("figures.vectors")

VectorArray = NDArray[np.floating]
MARKED = 64  # up to so many rows each has a mark; more marks would touch
LYING = 60  # up to so many letters, gaps included, labels are written level
WIDE_LABELS = 8  # labels of many dimensions: so few that they can be written level
OUTLIERS = 2.0  # the colours end early if the largest value is so many times a high percentile
_TICKS = 6  # numbers on one axis


@dataclass(frozen=True)
class ColourEnd:
    """Where the colours of a figure end, and how many values lie beyond."""

    value: float
    beyond: int
    total: int

    @property
    def short(self) -> str:
        """The same in a few words, where several kinds of rows have colours of their own."""
        beyond = f", {self.beyond:,} values beyond" if self.beyond else ""
        return f"colours end at ±{self.value:.3g}{beyond}"

    def say_beyond(self, figure: go.Figure) -> go.Figure:
        """The figure of `heatmap`, with a note beside its colour scale where values lie beyond."""
        if not self.beyond:
            return figure
        words = f"{self.beyond:,} of {self.total:,}<br>lie beyond the ends"
        place = {"xref": "paper", "yref": "paper", "xshift": SCALE_BELOW + 8, "yanchor": "top"}
        return figure.add_annotation(note(words, 0, 0, align="left", **place))

    @staticmethod
    def several(ends: Iterable["ColourEnd"]) -> str:
        """The note on a figure whose parts have scales of their own."""
        beyond = sum(end.beyond for end in ends)
        return f";<br>{beyond:,} values lie beyond the ends of theirs" if beyond else ""


def colour_end(values: VectorArray, percentile: float = 99.5) -> ColourEnd:
    """The largest |value|, or this percentile if a few large values would leave all others pale."""
    sizes = np.abs(values)
    largest, usual = float(sizes.max()), float(np.percentile(sizes, percentile))
    end = usual if 0 < usual * OUTLIERS < largest else largest
    return ColourEnd(end, int((sizes > end).sum()), sizes.size)


def token_rows(
    values: VectorArray,
    *,
    tokens: Sequence[str],
    columns: Axis,
    quantity: QuantityName,
    end: ColourEnd | None = None,
    chosen: int | None = None,
) -> go.Figure:
    """A heatmap with a row for each token.

    Args:
        values: (token, column).
        quantity: whose colours, which diverge around 0.
        end: of the colours; None: that of these values.
        chosen: the row that is framed; with it each cell of up to 64 rows can be clicked: trace "marks" has a
            point a cell, row by row. None: none is.
    """
    end = end or colour_end(values)
    rows = Axis("token", tokens)
    figure = heatmap(values, rows=rows, columns=columns, quantity=quantity, limit=end.value)
    end.say_beyond(figure)
    width = values.shape[1]
    cells = figure.data[-1]
    if cells.hovertext is None:
        cells.hovertemplate = "token %{y}, %{x}<br>%{z:.4f}<extra></extra>"
    axis = figure.layout.xaxis
    if width > LABELS:
        ticks = tick_positions(width, WIDE_LABELS)
        axis.tickvals, axis.ticktext = ticks, [columns.label(tick) for tick in ticks]
        axis.tickangle = 0
    elif width * (1 + max(len(columns.label(column)) for column in range(width))) > LYING:
        axis.tickangle = SLANTED
    if chosen is None:
        return figure
    frame_row(figure, chosen, width)
    if len(tokens) > MARKED:
        return figure
    row, column = (axis.ravel() for axis in np.indices(values.shape))
    texts = [
        f"{rows.name} {at} {rows.label(at)}, {columns.name} {columns.label(across)}<br>"
        f"{signed(f'{values[at, across]:.4f}')}"
        for at, across in np.ndindex(values.shape)
    ]
    look = {"size": 18, "opacity": 0}
    figure.add_trace(marks(column, row, name="marks", marker=look, text=texts, hover="%{text}"))
    return figure.update_layout(CLICKED)


def frame_row(figure: go.Figure, row: int, width: int, *, inset: float = 0.0) -> None:
    """A frame around one row.

    Args:
        width: columns.
        inset: how far it lies within the row, above and below, in rows.
    """
    frame(figure, (-0.5, width - 0.5, row - 0.5 + inset, row + 0.5 - inset), MASKED)


AROUND = 2  # rows of a table that are drawn above and below the chosen one
_LETTERS = 10  # of a token


def summands(parts: Mapping[str, VectorArray], total: VectorArray) -> go.Figure:
    """parts: vectors (d_model,) by their names; total (d_model,): what they add up to."""
    rows = [*parts.values(), np.full(len(total), np.nan), total]
    end = colour_end(np.array([*parts.values(), total]))
    return _stacked(rows, [*parts, "", "= sum"], "", end, height=420)


def rows_around(id_: int, vocabulary: int) -> range:
    """The ids whose rows are drawn around one id."""
    return range(max(id_ - AROUND, 0), min(id_ + AROUND + 1, vocabulary))


def look_up(
    table: VectorArray,
    texts: Sequence[str],
    *,
    id_: int,
    product: VectorArray,
    steps: Mapping[str, VectorArray],
) -> go.Figure:
    """One-hot times the table: the one-hot vector on the left, beside it the rows around an id, all but its
    own pale; a line leads from that row to the product below.

    Args:
        table: (vocabulary, d_model).
        texts: the tokens of `rows_around`.
        product: (d_model,): one-hot times the whole table.
        steps: vectors (d_model,) by their names, from the product to what the first layer reads; below it.
    """
    ids, width = rows_around(id_, len(table)), len(product)
    gap = np.full(width, np.nan)
    left_out = [gap] * (ids.start > 0)
    rows = [*left_out, *table[ids.start : ids.stop], gap, product, *steps.values()]
    labels = [
        *["⋮"] * len(left_out),
        *(f"{row} {token_label(text, _LETTERS)}" for row, text in zip(ids, texts, strict=True)),
        "⋮" if ids.stop < len(table) else "",
        f"= row {id_}",
        *steps,
    ]
    end = colour_end(np.array([*table[ids.start : ids.stop], product, *steps.values()]))
    figure = _stacked(rows, labels, "", end, height=500)
    chosen, below = len(left_out) + ids.index(id_), len(left_out) + len(ids) + 1
    _row_is_taken(figure, chosen, below, width, around=range(len(left_out), below - 1))
    if steps:
        frame(figure, (-0.5, width - 0.5, len(rows) - 1.5, len(rows) - 0.5), INK, 3)
    places = range(len(left_out), len(left_out) + len(ids))
    digits = ["1" if place == chosen else "0" for place in places]
    for place in places:
        fill = MASKED if place == chosen else rgba(MASKED, 0.12)
        figure.add_shape(
            type="rect",
            xref="x2",
            x0=0,
            x1=1,
            y0=place - 0.42,
            y1=place + 0.42,
            fillcolor=fill,
            line_width=0,
            layer="below",
        )
    column = marks(
        [0.5] * len(ids),
        [*places],
        mode="markers+text",  # as text alone they would be hidden where the cells are narrow
        marker={"opacity": 0},
        text=digits,
        textfont=MONOSPACED
        | {"size": 15, "color": [PAPER if one == "1" else INK for one in digits]},
        xaxis="x2",
    )
    figure.add_trace(column)
    figure.update_layout(
        xaxis={"domain": [0.18, 1.0], "range": [-0.5, 1.03 * width]},
        xaxis2=BARE | {"domain": [0.0, 0.11], "range": [0, 1], "showticklabels": False},
        yaxis={"anchor": "x2"},
    )
    paper = {"xref": "paper", "yref": "paper"}
    figure.add_annotation(note("one-hot", 0.12, 1, xanchor="right", yanchor="bottom", **paper))
    figure.add_annotation(note("×", 0.16, 0.5, xanchor="center", font={"size": 18}, **paper))
    return figure


def _row_is_taken(
    figure: go.Figure, row: int, below: int, width: int, *, around: Iterable[int]
) -> None:
    """A row and its copy below in frames with a line from one to the other; the rows around it are pale."""
    for other in around:
        if other != row:
            veil = {"fillcolor": PAPER, "opacity": 0.6, "line_width": 0}
            sides = {"x0": -0.5, "x1": width - 0.5, "y0": other - 0.5, "y1": other + 0.5}
            figure.add_shape(type="rect", **sides, **veil)
    for framed in (row, below):
        frame(figure, (-0.5, width - 0.5, framed - 0.5, framed + 0.5), INK, 3)
    beside = width * 1.015
    path = f"M{width - 0.5},{row} L{beside},{row} L{beside},{below} L{width - 0.5},{below}"
    figure.add_shape(type="path", path=path, line={"color": INK, "width": 3})


def _stacked(
    rows: Sequence[VectorArray],
    labels: Sequence[str],
    name: str,
    end: ColourEnd,
    *,
    height: int,
) -> go.Figure:
    """Vectors one below the other."""
    values = np.array(rows)
    width = values.shape[1]
    figure = heatmap(
        values,
        rows=Axis(name, labels, tokens=False),
        columns=numbered("dimension", width),
        quantity="stream",
        limit=end.value,
        height=height,
    )
    return end.say_beyond(figure.update_xaxes(_few_numbers("dimension", width)))


def position_map(table: VectorArray, *, column_name: str, value_name: str) -> go.Figure:
    """table (position, column): one row a position."""
    end = colour_end(table)
    figure = heatmap(
        table,
        rows=numbered("position", len(table)),
        columns=numbered(column_name, table.shape[1]),
        quantity="stream",
        limit=end.value,
        height=440,
    )
    hover = f"position %{{y}}, {column_name} %{{x}}<br>{value_name} %{{z:.4f}}<extra></extra>"
    figure.data[-1].update(hovertext=None, hovertemplate=hover)
    end.say_beyond(figure.update_xaxes(_few_numbers(column_name, table.shape[1])))
    return figure.update_yaxes(_few_numbers("position", len(table)))


def likeness_map(alike: VectorArray) -> go.Figure:
    """alike (position, position) from -1 to 1."""
    axis = numbered("position", len(alike))
    figure = heatmap(alike, rows=axis, columns=axis, quantity="stream", limit=1.0, square=True)
    hover = "positions %{y} and %{x}<br>likeness %{z:.4f}<extra></extra>"
    figure.data[-1].update(hovertext=None, hovertemplate=hover)
    both = _few_numbers("position", len(alike))
    return figure.update_xaxes(both).update_yaxes(both)


def _few_numbers(title: str, count: int) -> dict[str, object]:
    """A few numbers along an axis, under its title."""
    ticks = tick_positions(count, _TICKS)
    return titled(title, tickvals=ticks, ticktext=[str(tick) for tick in ticks], tickangle=0)


_FEW, _MANY = 22, 15  # pixels of a row, where rows are few and where they are many
_LENGTHS = 112  # pixels of the lengths
_THICK = 2  # rows of the figure that one token's outputs take


def merging(
    outputs: VectorArray,
    written: VectorArray,
    sums: dict[str, VectorArray],
    *,
    groups: int,
    chosen: int,
) -> go.Figure:
    """One token: the outputs of all heads side by side, and what they become through W_O, one colour a head.
    The length of each vector stands at its right, that of the longest head in bold.

    Args:
        outputs: (head, d_v), side by side at the top.
        written: what each head writes (head, d_model), below them.
        sums: vectors (d_model,) by their names, at the bottom.
        groups: heads of keys and values.
        chosen: the head that is framed.
    """
    heads, width = written.shape
    drawn = {"outputs": outputs, "heads": written, "sums": np.array(list(sums.values()))}
    end = {name: colour_end(values) for name, values in drawn.items()}
    first = _THICK + 1  # the row of the first head
    after = first + heads + 1
    rows = [
        *(
            (first + head, row, hue_of(head, heads, groups), end["heads"], f"head {head}")
            for head, row in enumerate(written)
        ),
        *(
            (after + number, row, QUANTITIES["stream"].hue, end["sums"], name)
            for number, (name, row) in enumerate(sums.items())
        ),
    ]
    traces = list(_strips(outputs[:, None], width, groups, end["outputs"], height=_THICK))
    traces += [_cells(row[None], hue, e, name, y0=y, dy=1) for y, row, hue, e, name in rows]
    labels = ["side by side", "", "", *(f"head {head}" for head in range(heads)), "", *sums]
    figure = _side_by_side(traces, labels, width, end.values())
    lengths = [float(np.linalg.norm(row)) for _, row, *_ in rows]
    longest = max(lengths[:heads])
    words = {first - 1: "length"}
    for at, ((place, *_), length) in enumerate(zip(rows, lengths, strict=True)):
        is_longest = at < heads and length == longest
        words[place] = f"<b>{length:.2f} longest</b>" if is_longest else f"{length:.2f}"
    for place, word in words.items():
        figure.add_annotation(note(word, 1, place, xref="paper", font=MONOSPACED))
    figure.update_layout(margin={"r": _LENGTHS})
    frame_row(figure, first + chosen, width)
    return figure


def merging_of_tokens(
    outputs: VectorArray, total: VectorArray, *, tokens: Sequence[str], groups: int
) -> go.Figure:
    """The whole sentence: the outputs of the heads side by side; below them what the sub-layer writes.

    Args:
        outputs: (head, token, d_v).
        total: (token, d_model).
        groups: heads of keys and values: heads that share one have one colour.
    """
    count, width = total.shape
    end = {"outputs": colour_end(outputs), "sums": colour_end(total)}
    traces = list(_strips(outputs, width, groups, end["outputs"], height=1))
    hue = QUANTITIES["stream"].hue
    traces.append(_cells(total, hue, end["sums"], "sum", y0=count + 1, dy=1))
    names = [token_label(token, LABEL) for token in tokens]
    return _side_by_side(traces, [*names, "", *names], width, end.values())


def _strips(
    outputs: VectorArray, width: int, groups: int, end: ColourEnd, *, height: int
) -> Iterator[go.Heatmap]:
    """Each head's outputs (token, d_v), side by side over so many columns, from the first row down."""
    heads, _, own = outputs.shape
    share = width / (heads * own)  # 1, unless heads are wider or narrower than the stream together
    for head, rows in enumerate(outputs):
        places = {"x0": (head * own + 0.5) * share - 0.5, "dx": share}
        places |= {"y0": (height - 1) / 2, "dy": height}
        name = f"output of head {head}"
        yield _cells(rows, hue_of(head, heads, groups), end, name, **places)


def _cells(
    values: VectorArray, hue: str, end: ColourEnd, words: str, **places: object
) -> go.Heatmap:
    """Rows of a vector's numbers in a colour."""
    return go.Heatmap(
        z=values.astype(np.float32),
        zmin=-end.value,
        zmax=end.value,
        colorscale=vector_scale(hue),
        showscale=False,
        hovertemplate=f"{words}<br>%{{z:.4f}}<br>{end.short}<extra></extra>",
        **places,
    )


def _side_by_side(
    traces: Sequence[go.Heatmap], labels: Sequence[str], width: int, ends: Iterable[ColourEnd]
) -> go.Figure:
    """labels: one a row, "" for a gap. ends: of all colours."""
    ticks = dimension_ticks(width, _TICKS)
    title = say("dimension_block_own", several=ColourEnd.several(ends))
    look = BARE | {"tickfont": MONOSPACED, "tickangle": 0}
    texts = [str(tick) for tick in ticks]
    across = titled(title, range=[-0.5, width - 0.5], tickvals=ticks, ticktext=texts) | look
    named = {place: plotly_words(label) for place, label in enumerate(labels) if label}
    down = look | {"tickvals": list(named), "ticktext": list(named.values())}
    row = _FEW if len(labels) <= _FEW else _MANY
    height = row * len(labels) + 74
    return chart(list(traces), across, down | {"range": [len(labels) - 0.5, -0.5]}, height=height)
