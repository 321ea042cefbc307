"""Writing as a staircase: of which tokens keys and values are kept, and of which they are computed."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from model.analysis.cost.writing import WritingStep
from viz.figures.chart import Axis, chart, marks
from viz.figures.heatmap import SLANTED
from viz.notation.labels import plotly_label
from viz.notation.theme import KEY, MASKED, rgba

COLUMNS = 24  # of the last tokens; the others would make the cells too narrow
_CELL, _TITLE, _AROUND = 16, 24, 180  # pixels: a row, a panel's title, the legend and the tokens
_NOW, _BEFORE, _IN_SOME, _DROPPED = 1, 2, 3, 4  # states of a cell
_STATES = {
    _NOW: ("computed now", KEY),
    _BEFORE: ("kept", rgba(KEY, 0.32)),
    _IN_SOME: ("kept in some layers", rgba(KEY, 0.14)),
    _DROPPED: ("dropped", rgba(MASKED, 0.14)),
}
_WITHOUT = {_NOW: _STATES[_NOW], _BEFORE: ("computed again", MASKED)}


def staircase(
    steps: Sequence[WritingStep], tokens: Sequence[str], read: Sequence[Sequence[int]]
) -> go.Figure:
    """Rows are steps, columns the last of the tokens; above with a cache, below without one.

    read: of each step the keys that are there for its last token, by layer: what a sliding window hides is
    dropped.
    """
    first = max(len(tokens) - COLUMNS, 0)
    at = np.arange(first, len(tokens))
    cells = np.full((len(steps), len(at)), np.nan, np.float32)
    for row, step, keys in zip(cells, steps, read, strict=True):
        row[at < step.tokens] = _NOW
        before = at < step.kept
        has = (step.tokens - at[before, None] <= np.array(keys)).mean(1)  # share of the layers
        row[before] = np.where(has == 1, _BEFORE, np.where(has > 0, _IN_SOME, _DROPPED))
    inner = 2 * _CELL * len(steps) + 2 * _TITLE
    above, below = [1 - (inner / 2 - _TITLE) / inner, 1.0], [0.0, (inner / 2 - _TITLE) / inner]
    rows = Axis("step", [str(number + 1) for number in range(len(steps))], tokens=False).down()
    name = f"token (the last {len(at)} of {len(tokens)})" if first else "token"
    labels = Axis(name, list(tokens)[first:]).across(
        range=[-0.5, len(at) - 0.5], tickangle=SLANTED, anchor="y2"
    )
    named = [f"{first + place} {plotly_label(text)}" for place, text in enumerate(tokens[first:])]
    shown = [state for state in _STATES if state == _BEFORE or (cells == state).any()]
    panels = (
        _cells(cells, named, "", {state: _STATES[state] for state in shown}),
        _cells(np.where(cells > _BEFORE, _BEFORE, cells), named, "2", _WITHOUT),
    )
    entries = [*(_STATES[state] for state in shown), _WITHOUT[_BEFORE]]
    return chart(
        [*panels, *(_entry(*one) for one in entries)],
        labels,
        rows | {"domain": above},
        height=inner + _AROUND,
        yaxis2=rows | {"domain": below},
        annotations=[_title("with the cache", 1.0), _title("without it", below[1])],
        legend={"orientation": "h", "x": 0, "y": 1 + _TITLE / inner, "yanchor": "bottom"},
        meta=_in_words(steps, dropped=bool((cells[-1] > _BEFORE).any())),
    )


def _cells(
    cells: np.ndarray, named: Sequence[str], panel: str, states: Mapping[int, tuple[str, str]]
) -> go.Heatmap:
    """One panel. states: what each is called, and its colour."""
    said = [
        [
            f"step {step + 1}, {name}: {states[state][0] if state in states else ''}"
            for name, state in zip(named, row.tolist(), strict=True)
        ]
        for step, row in enumerate(cells)
    ]
    colours = [states.get(state, states[_NOW])[1] for state in _STATES]
    return go.Heatmap(
        z=cells,
        yaxis=f"y{panel}",
        zmin=_NOW,
        zmax=_DROPPED,
        colorscale=[[place / (len(colours) - 1), one] for place, one in enumerate(colours)],
        showscale=False,
        hoverongaps=False,
        xgap=1,
        ygap=1,
        hovertext=said,
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _entry(name: str, colour: str) -> go.Scatter:
    """An entry of the legend."""
    marker = {"symbol": "square", "size": 12, "color": colour}
    return marks([None], [None], name=name, marker=marker, showlegend=True)


def _title(words: str, height: float) -> dict[str, object]:
    place = {"xref": "paper", "yref": "paper", "x": 0, "y": height, "yanchor": "bottom"}
    return place | {"text": words, "showarrow": False, "xanchor": "left"}


def _in_words(steps: Sequence[WritingStep], *, dropped: bool) -> str:
    last = steps[-1]
    kept = f"those of the {last.kept} others are kept"
    if dropped:
        kept += ", but for what a sliding window drops"
    return (
        f"A staircase of {len(steps)} steps. In step {len(steps)} the keys and values of "
        f"{last.new} of {last.tokens} tokens are computed; {kept}, "
        "and without a cache they are computed again."
    )
