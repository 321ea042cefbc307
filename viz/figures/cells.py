"""Heatmaps whose cells say more than a colour: edges that are cut, zeros of dropout, matrices side by side,
predicted tokens, tensors, and the numbers of a worked example."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from model.trace.arrays import BoolArray
from model.worked.example import Labels, Step
from viz.figures.chart import Axis, chart, frame, line, marks, titled
from viz.figures.heatmap import NUMBERED, Matrix, cell_text, heatmap, numbers_in_cells
from viz.figures.room import ABOVE, BELOW, TITLE_LINE, height_of_labels
from viz.notation.labels import WORD_JOINER, plotly_label, plotly_words, tick_positions, token_label
from viz.notation.numbers import numbers, probability
from viz.notation.theme import (
    ERRATUM,
    FEED_FORWARD,
    INK,
    LESS,
    MASKED,
    OUTPUT,
    PROBABILITY,
    STREAM,
    WEIGHT,
    QuantityName,
    rgba,
    rising_scale,
)
from viz.notation.words import sentences_of

say = sentences_of("figures.cells")

CLICKED = 24  # up to so many queries and keys each edge has a mark
CROSSED = 64 * 64  # up to so many cells each zero has a cross; more crosses would touch
_EDGE = 8  # pixels below cells without a scale


def edges(
    look: BoolArray, cut: BoolArray, *, queries: Sequence[str], keys: Sequence[str]
) -> go.Figure:
    """The edges of a head. The last trace holds one mark a cell, row by row.

    Args:
        look: (query, key): whether the mask allows the edge.
        cut: (query, key): whether it is cut.

    Raises ValueError if sizes do not fit.
    """
    figure = heatmap(
        np.where(look, 0.35, 0.0).astype(np.float32),
        rows=Axis("query", queries),
        columns=Axis("key", keys),
        quantity="weight",
        blocked=~look,
        words=(),
        square=True,
    )
    figure.data[-1].showscale = False
    figure.update_traces(hoverinfo="skip", hovertemplate=None)
    row, column = (axis.ravel() for axis in np.indices(look.shape))
    state = np.where(cut, "cut", np.where(look, "may attend", "already masked"))
    marker = {
        "symbol": np.where(cut, "x", "square").ravel().tolist(),
        "size": 14,
        "color": np.where(cut, LESS, np.where(look, WEIGHT, MASKED)).ravel().tolist(),
        "opacity": np.where(cut, 1.0, 0.25).ravel().tolist(),
    }
    words = [
        f"query {query} {queries[query]}, key {key} {keys[key]}: {state[query, key]}"
        for query, key in np.ndindex(look.shape)
    ]
    return figure.add_trace(marks(column, row, marker=marker, text=words, hover="%{text}"))


def after_dropout(
    values: Matrix,
    kept: BoolArray,
    *,
    rows: Axis,
    columns: Axis,
    quantity: QuantityName,
    blocked: BoolArray | None = None,
    limit: float | None = None,
) -> go.Figure:
    """values (row, column) after dropout, each zero of it with a cross.

    Args:
        kept: False where a value was set to 0.
        rows, columns, quantity: as of `heatmap`.
        blocked: True where a cell was never allowed: grey, and without a cross.
        limit: end of the colours, for weights always 1; values beyond it are counted on the figure.
    """
    figure = heatmap(
        values,
        rows=rows,
        columns=columns,
        quantity=quantity,
        blocked=blocked,
        limit=limit,
        square=quantity == "weight",
    )
    zero = ~kept if blocked is None else ~kept & ~blocked
    crossed = values.size <= CROSSED
    if zero.any() and crossed:
        at_row, at_column = np.nonzero(zero)
        cross = {"symbol": "x-thin", "size": 8, "line": {"width": 1.5, "color": MASKED}}
        figure.add_trace(marks(at_column, at_row, name="set to 0", marker=cross, hover="set to 0"))
    title = [f"{columns.name}, {'×' if crossed else 'without colour'}: set to 0"]
    end = 1.0 if quantity == "weight" else limit
    beyond = 0 if end is None else int((np.abs(values) > end).sum())
    if beyond:
        count = values.size if blocked is None else int((~blocked).sum())
        title.append(say("beyond_colours_end", beyond=beyond, count=count, end=end))
    return figure.update_xaxes(title={"text": "<br>".join(title)})


def panels(
    matrices: Mapping[str, Matrix],
    *,
    tokens: Sequence[str],
    quantity: QuantityName | None,
    blocked: Sequence[BoolArray],
    numbered: int = NUMBERED,
    row: int | None = None,
) -> go.Figure:
    """matrices (query, key) of equal shape by what stands above them, with an empty column between two.

    Args:
        tokens: of queries and keys.
        quantity: whose colours; None: plain tiles with whole numbers.
        blocked: of each matrix, True where a cell is masked: hatched, without a number.
        numbered: with more tokens no cell holds a number.
        row: the query that the words beside it name; it stands in a frame.
    """
    count = len(tokens)
    labels = [token_label(token, 8) for token in tokens]

    def beside(parts: Sequence[NDArray[Any]], between: float | bool) -> NDArray[Any]:
        empty = np.full((count, 1), between, parts[0].dtype)
        return np.hstack([part for each in parts for part in (each, empty)][:-1])

    values = beside([np.asarray(each, np.float32) for each in matrices.values()], np.nan)
    figure = heatmap(
        values,
        rows=Axis("query", labels, tokens=False),
        columns=Axis("", ([*labels, ""] * len(matrices))[:-1], tokens=False),
        quantity=quantity,
        blocked=beside(list(blocked), False),
        words=(None if quantity else numbers_in_cells(values, 0)) if count <= numbered else (),
        square=True,
    )
    if quantity is None:
        figure.data[-1].hovertemplate = "%{hovertext}<br>%{z:.0f}<extra></extra>"
        figure.update_layout(margin_b=_EDGE, height=figure.layout.height - BELOW + _EDGE)
    axis = figure.layout.xaxis
    axis.update(_ticks_of_panels([*map(plotly_words, labels)], len(matrices)))
    above = height_of_labels(axis.ticktext, axis.tickangle or 0) or ABOVE
    figure.update_layout(margin_t=above)
    figure.update_xaxes(showline=False).update_yaxes(showline=False)
    for panel, name in enumerate(matrices):
        left = panel * (count + 1) - 0.5
        frame(figure, (left, left + count, -0.5, count - 0.5), rgba(MASKED, 0.5), 1)
        if row is not None:
            frame(figure, (left, left + count, row - 0.5, row + 0.5), INK)
        figure.add_annotation(
            text=name,
            x=left + count / 2,
            y=1,
            yref="paper",
            yanchor="bottom",
            yshift=above - TITLE_LINE,
            showarrow=False,
            font={"size": 13},
        )
    return figure


def _ticks_of_panels(labels: Sequence[str], count: int) -> dict[str, list[Any]]:
    """The same labels above each of so many panels, 48 at most. Between two panels of an odd number stands
    one without letters, so that a narrow figure leaves out the same ones in both."""
    shown = tick_positions(len(labels), 48 // count)
    named = [*labels, WORD_JOINER]
    if len(shown) % 2 and len(shown) == len(labels):
        shown = (*shown, len(labels))
    places = [(panel * len(named) + at, named[at]) for panel in range(count) for at in shown]
    last = count * len(named) - 1
    places = [(at, label) for at, label in places if at < last]
    return {"tickvals": [at for at, _ in places], "ticktext": [label for _, label in places]}


_PREDICTED = 8  # characters of a token inside a cell
_CELL, _BESIDE = 62, 230  # width of a cell, and of what stands beside the cells, in pixels


def lens_table(
    shares: NDArray[np.float64],
    predicted: Sequence[Sequence[str]],
    *,
    states: Sequence[str],
    tokens: Sequence[str],
    error: float = 0.0,
) -> go.Figure:
    """The logit lens: which token each state of the stream would predict, and how surely. The cells keep
    their width, so a narrow page has to scroll.

    Args:
        shares: (state, token), probabilities as colours. Row = state, the first on top; column = token read.
        predicted: the token predicted by each state after each token; bold where the last state predicts it.
        states, tokens: their names.
        error: how far rounding may move the logarithm of a share.
    """
    words = [
        [
            f"<b>{plotly_label(text, _PREDICTED)}</b>"
            if text == final
            else plotly_label(text, _PREDICTED)
            for text, final in zip(row, predicted[-1], strict=True)
        ]
        for row in predicted
    ]
    hover = [
        [
            f"{plotly_words(state)}, after {plotly_label(token, 24)}:<br>{plotly_label(text, 24)} with "
            f"probability {probability(share, error)}"
            for token, text, share in zip(tokens, row, given, strict=True)
        ]
        for state, row, given in zip(states, predicted, shares, strict=True)
    ]
    figure = heatmap(
        shares,
        rows=Axis(say("state_stream"), states, tokens=False),
        columns=Axis("token read", tokens),
        quantity="weight",
        words=words,
        height=130 + 40 * len(states),
    )
    figure.data[-1].update(
        hovertext=hover,
        hovertemplate="%{hovertext}<extra></extra>",
        colorscale=rising_scale(PROBABILITY),
    )
    return figure.update_layout(width=_BESIDE + _CELL * len(tokens))


_COLOURED: Mapping[str, QuantityName] = {
    "query": "query",
    "key": "key",
    "value": "value",
    "score": "score",
    "weight": "weight",
    "output": "output",
}
_LINES = (STREAM, OUTPUT, FEED_FORWARD, MASKED)
_LONGEST_HEAD = 56  # letters above a single row; where its labels are longer it stands upright


def worked_step(step: Step) -> go.Figure:
    """A result of one or two axes: cells with their numbers, or lines where there are too many.

    Masked cells are grey and hatched; cells for which the notes print another number are framed.
    The figure's width is the least at which the numbers fit their cells.
    """
    values = np.atleast_2d(step.result)
    rows = labels(step.rows, len(values), alone=step.result.ndim == 1)
    columns = labels(step.columns, values.shape[1])
    if values.shape[1] > NUMBERED:
        return _lines(step.title, values, rows, [plotly_words(label) for label in columns])
    blocked, differing = (
        np.zeros(values.shape, bool) if marked is None else marked.reshape(values.shape)
        for marked in (step.blocked, step.differing)
    )
    if step.result.ndim == 1 and max(map(len, columns)) * len(columns) > _LONGEST_HEAD:
        rows, columns = columns, rows
        values, blocked, differing = values.T, blocked.T, differing.T
    words = numbers(values)
    figure = heatmap(
        values,
        rows=Axis("", rows, tokens=False),
        columns=Axis("", columns, tokens=False),
        quantity=_COLOURED.get(step.quantity),
        blocked=blocked,
        words=words,
        height=round(np.clip(288 / len(values), 40, 72)) * len(values)
        + 70,  # rows, and labels above
    )
    hover = "%{hovertext}<br>%{text}<extra></extra>"
    open_cells = figure.data[-1]
    open_cells.update(text=words, hovertemplate=hover, showscale=False)
    if step.quantity == "weight":  # dropout scales weights beyond 1, and shares may be in percent
        open_cells.update(zmax=max(1.0, float(values.max())))
    elif blocked.any():  # a masked weight is 0 and not worth a number
        figure.add_traces(cell_text(words, np.where(blocked, 0.0, np.nan)))
    for row, column in np.argwhere(differing).tolist():
        sides = (column - 0.47, column + 0.47, row - 0.44, row + 0.44)
        frame(figure, sides, ERRATUM, 2.5)
    cell = max(len(word) for row in (*words, columns) for word in row)
    return figure.update_layout(width=_width(max(map(len, rows))) + len(columns) * _width(cell))


def labels(given: Labels, count: int, *, alone: bool = False) -> list[str]:
    """The labels of an axis, or else numbers from 0; nothing for a single row."""
    if given is not None:
        return list(given)
    return [""] if alone else [str(position) for position in range(count)]


def _width(letters: int) -> int:
    """Pixels of the words of a cell, and around them."""
    return round(7.5 * letters) + 16


def _lines(
    title: str, values: NDArray[np.float64], names: list[str], ticks: list[str]
) -> go.Figure:
    """One line for each row over the labels of the columns."""
    places = list(range(len(ticks)))
    lines = [
        line(
            *(places, row, plotly_words(name), _LINES[number % len(_LINES)]),
            mode="lines+markers",
            width=2,
            text=ticks,
            hover="%{text}: %{y:.4f}",
        )
        for number, (name, row) in enumerate(zip(names, values, strict=True))
    ]
    shown = tick_positions(len(ticks), NUMBERED)
    across: dict[str, object] = {"tickvals": shown, "ticktext": [ticks[place] for place in shown]}
    up = titled(plotly_words(title), rangemode="tozero")
    return chart(lines, across, up, height=340, showlegend=len(values) > 1)
