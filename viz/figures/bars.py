"""Bars: amounts, nearest tokens, parts of a sum, one row of weights."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.figures.chart import Axis, bars_across, chart, titled
from viz.notation.labels import plotly_label, plotly_words
from viz.notation.numbers import signed
from viz.notation.theme import LESS, MASKED, MORE, STREAM, WEIGHT


@dataclass(frozen=True)
class Amount:
    """One row: its name, its value, and the words beside its bar."""

    name: str
    value: float
    words: str
    colour: str = MASKED


def amounts(rows: Sequence[Amount], *, unit: str) -> go.Figure:
    """One bar a row, the first row on top."""
    values = [row.value for row in rows]
    largest = max(values)
    carries_words = [value > 0.6 * largest for value in values]
    bars = bars_across(
        values,
        [row.colour for row in rows],
        text=[plotly_words(row.words).replace(" (", "<br>(") for row in rows],
        textposition=["inside" if inside else "outside" for inside in carries_words],
        insidetextanchor="end",
        insidetextfont={"color": "white"},
        constraintext="none",
        textfont={"family": "monospace", "size": 11},
        customdata=[[plotly_words(row.name), row.value] for row in rows],
        hover="%{customdata[0]}: %{customdata[1]:,}",
    )
    across = titled(unit, range=[0, 1.25 * largest or 1], nticks=5)
    names = Axis("", [row.name for row in rows], tokens=False).down(tickfont=None)
    return chart(bars, across, names, height=80 + 36 * len(rows), bargap=0.2)


def percent(share: float) -> str:
    """A share in percent with one decimal. A small share never becomes 0.0%."""
    return "<0.1%" if 0 < share < 0.0005 else f"{share:.1%}"


def neighbours_bars(texts: Sequence[str], cosines: Sequence[float]) -> go.Figure:
    """The tokens nearest to one token, the nearest on top. Cosines lie between -1 and 1."""
    bars = bars_across(
        cosines,
        STREAM,
        text=[signed(f"{cosine:.4f}") for cosine in cosines],
        textposition="outside",
        hovertext=[plotly_label(text) for text in texts],
        hover="%{hovertext}<br>cosine %{x:.4f}",
    )
    across = titled(
        "cosine of the angle to the chosen token's vector",
        range=[1.2 * min([0.0, *cosines]), 1.12],
        tickvals=[-1, -0.5, 0, 0.5, 1],
    )
    return chart(bars, across, Axis("", texts, longest=18).down(), height=100 + 28 * len(texts))


def part_bars(names: Sequence[str], values: Sequence[float], *, title: str) -> go.Figure:
    """What each part adds to a sum, from the top down, red above 0 and blue below."""
    bars = bars_across(
        values,
        [MORE if value >= 0 else LESS for value in values],
        text=[signed(f"{value:+.2f}") for value in values],
        textposition="outside",
        hover="%{x:+.4f}",
    )
    low, high = min([0.0, *values]), max([0.0, *values])
    room = 0.18 * (max(-low, high) or 1.0)
    ends = [low - room if low < 0 else 0, high + room]
    across = titled(title, range=ends, zeroline=True, zerolinecolor=MASKED)
    rows = Axis("", names, tokens=False).down(tickfont=None)
    return chart(bars, across, rows, height=22 * len(names) + 70)


def weights_row(
    weights: NDArray[np.floating], tokens: Sequence[str], *, written: int = 0
) -> go.Figure:
    """weights (key,) of one query as upright bars, one a token, from the first to the last.

    written: how many of the last tokens the model wrote itself; a dotted line stands before them.
    Raises ValueError if weights and tokens are not equally many.
    """
    if weights.shape != (len(tokens),):
        raise ValueError(f"{weights.shape} weights for {len(tokens)} tokens.")
    bars = go.Bar(
        x=list(range(len(tokens))),
        y=weights,
        marker={"color": WEIGHT},
        hovertext=[f"{place} {plotly_label(text, 24)}" for place, text in enumerate(tokens)],
        hovertemplate="key %{hovertext}<br>weight %{y:.4f}<extra></extra>",
    )
    across = Axis("key token", tokens).across(tickangle=-60)
    figure = chart(bars, across, titled("weight", range=[0, 1], tickvals=[0, 0.5, 1]), height=330)
    if 0 < written < len(tokens):
        dotted = {"dash": "dot", "width": 1, "color": MASKED}
        figure.add_vline(len(tokens) - written - 0.5, line=dotted)
    return figure
