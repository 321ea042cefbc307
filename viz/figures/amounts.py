"""Amounts as bars: one row each, with its own words beside the bar."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from viz.notation.labels import plotly_words
from viz.notation.theme import MASKED


@dataclass(frozen=True)
class Amount:
    """One row: its name, how much, what stands beside its bar."""

    name: str
    value: float
    words: str
    colour: str = MASKED


def amounts(rows: Sequence[Amount], *, unit: str, logarithmic: bool = False) -> go.Figure:
    """The first row on top. A logarithmic axis starts at 1: for amounts of very different sizes."""
    positions = list(range(len(rows)))
    values = [max(row.value, 1) if logarithmic else row.value for row in rows]
    bars = go.Bar(
        x=values,
        y=positions,
        orientation="h",
        marker={"color": [row.colour for row in rows]},
        text=[plotly_words(row.words).replace(" (", "<br>(") for row in rows],
        textposition=["inside" if inside else "outside" for inside in _long(values, logarithmic)],
        insidetextanchor="end",
        insidetextfont={"color": "white"},
        constraintext="none",
        textfont={"family": "monospace", "size": 11},
        cliponaxis=False,
        customdata=[[plotly_words(row.name), row.value] for row in rows],
        hovertemplate="%{customdata[0]}: %{customdata[1]:,}<extra></extra>",
    )
    names = {
        "tickvals": positions,
        "ticktext": [plotly_words(row.name) for row in rows],
        "range": [len(rows) - 0.5, -0.5],
        "showgrid": False,
        "zeroline": False,
    }
    layout = {
        "xaxis": {"title": {"text": unit}} | _axis(values, logarithmic),
        "yaxis": names,
        "height": 80 + 36 * len(rows),
        "bargap": 0.2,
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "showlegend": False,
    }
    return go.Figure(bars, layout)


def _long(values: Sequence[float], logarithmic: bool) -> list[bool]:
    """Which bars are long enough to carry their words; a logarithmic axis has room beside them."""
    return [not logarithmic and value > 0.6 * max(values) for value in values]


def percent(share: float) -> str:
    """A share as percent with one digit; a small one is not called nothing."""
    return "<0.1%" if 0 < share < 0.0005 else f"{share:.1%}"


def _axis(values: Sequence[float], logarithmic: bool) -> dict[str, object]:
    """From nothing (from 1 on a logarithmic axis) to the largest, with room for its words."""
    largest = max(values)
    if not logarithmic:
        return {"range": [0, 1.25 * largest or 1], "nticks": 5}
    digits = len(f"{largest:.0f}")
    return {"type": "log", "range": [0, digits * 1.5], "dtick": 2, "exponentformat": "power"}
