"""Writing as a staircase: of which tokens keys and values are kept, and of which they are computed."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from model.analysis.cost.writing import WritingStep
from viz.figures.chart import Axis, chart, marks
from viz.figures.heatmap import SLANTED
from viz.notation.labels import plotly_label
from viz.notation.theme import KEY, MASKED, rgba

COLUMNS = 24  # of the last tokens; the others would make the cells too narrow
_CELL, _TITLE, _AROUND = 16, 24, 180  # pixels: a row, a panel's title, the legend and the tokens
_NOW, _BEFORE = 1, 2
_KEPT, _AGAIN = rgba(KEY, 0.28), MASKED


def staircase(steps: Sequence[WritingStep], tokens: Sequence[str]) -> go.Figure:
    """Rows are steps, columns the last of the tokens; above with a cache, below without one."""
    first = max(len(tokens) - COLUMNS, 0)
    at = np.arange(first, len(tokens))
    cells = np.full((len(steps), len(at)), np.nan, np.float32)
    for row, step in zip(cells, steps, strict=True):
        row[at < step.tokens] = _NOW
        row[at < step.kept] = _BEFORE
    inner = 2 * _CELL * len(steps) + 2 * _TITLE
    above, below = [1 - (inner / 2 - _TITLE) / inner, 1.0], [0.0, (inner / 2 - _TITLE) / inner]
    rows = Axis("step", [str(number + 1) for number in range(len(steps))], tokens=False).down()
    name = f"token (the last {len(at)} of {len(tokens)})" if first else "token"
    labels = Axis(name, list(tokens)[first:]).across(
        range=[-0.5, len(at) - 0.5], tickangle=SLANTED, anchor="y2"
    )
    states = (("computed now", KEY), ("kept", _KEPT), ("computed again", _AGAIN))
    panels = (("", "kept", _KEPT), ("2", "computed again", _AGAIN))
    named = [f"{first + place} {plotly_label(text)}" for place, text in enumerate(tokens[first:])]
    return chart(
        [_cells(cells, named, *panel) for panel in panels] + [_entry(*one) for one in states],
        labels,
        rows | {"domain": above},
        height=inner + _AROUND,
        yaxis2=rows | {"domain": below},
        annotations=[_title("with the cache", 1.0), _title("without it", below[1])],
        legend={"orientation": "h", "x": 0, "y": 1 + _TITLE / inner, "yanchor": "bottom"},
        meta=_in_words(steps),
    )


def _cells(
    cells: np.ndarray, named: Sequence[str], panel: str, before: str, colour: str
) -> go.Heatmap:
    words = {_NOW: "computed now", _BEFORE: before}
    said = [
        [
            f"step {step + 1}, {name}: {words.get(state, '')}"
            for name, state in zip(named, row, strict=True)
        ]
        for step, row in enumerate(cells)
    ]
    return go.Heatmap(
        z=cells,
        yaxis=f"y{panel}",
        zmin=_NOW,
        zmax=_BEFORE,
        colorscale=[[0, KEY], [1, colour]],
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


def _in_words(steps: Sequence[WritingStep]) -> str:
    last = steps[-1]
    return (
        f"A staircase of {len(steps)} steps. In step {len(steps)} the keys and values of "
        f"{last.new} of {last.tokens} tokens are computed; those of the {last.kept} others are kept, and "
        "without a cache they are computed again."
    )
