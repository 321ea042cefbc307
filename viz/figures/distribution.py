"""Logits beside the probabilities they become: one row a token, and one for all the others."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from viz.figures.legend import ABOVE
from viz.notation.labels import plotly_label
from viz.notation.numbers import probability, settled
from viz.notation.theme import MASKED, SCORE, WEIGHT, colorscale

LABEL = 18  # characters
_LEFT, _RIGHT = [0.0, 0.35], [0.38, 1.0]  # of the width: logits, probabilities
LEGIBLE = 0.55  # a bar longer than this carries its number inside


@dataclass(frozen=True)
class Bars:
    """What one distribution gives the listed tokens and, at the end, all others together."""

    shares: Sequence[float]
    others: float
    error: float = 0.0  # how far rounding may move their logarithms

    @property
    def all(self) -> list[float]:
        return [*self.shares, self.others]


def distribution(
    labels: Sequence[str],
    logits: Sequence[float],
    model: Bars,
    drawn: Bars | None = None,
    *,
    chosen: int | None = None,
) -> go.Figure:
    """Left the logits, right the probabilities, the first label on top and "other" at the bottom.

    drawn: the distribution after temperature, top-k and top-p, beside the model's own; a token with
    no share left is marked "cut". chosen: the row of a token that was chosen.
    """
    rows = list(range(len(labels) + 1))
    names = [("the model's own", model, WEIGHT if drawn is None else MASKED)]
    if drawn is not None:
        names.append(("after temperature, top-k and top-p", drawn, WEIGHT))
    traces = [
        _logits(rows[:-1], logits, settled(model.error)),
        *(_shares(rows, *named) for named in names),
    ]
    down = {"range": [len(rows) - 0.5, -0.5], "showgrid": False, "zeroline": False}
    ticks = [*_ticks(labels, chosen), "<i>other</i>"]
    share = {"title": {"text": "probability"}, "range": [0, 1], "tickvals": [0, 0.5, 1]}
    layout = {
        "xaxis": {"title": {"text": "logit"}, "domain": _LEFT} | _room(logits),
        "xaxis2": share | {"domain": _RIGHT, "anchor": "y2"},
        "yaxis": down | {"tickvals": rows, "ticktext": ticks, "tickfont": {"family": "monospace"}},
        "yaxis2": down | {"anchor": "x2", "matches": "y", "showticklabels": False},
        "barmode": "group",
        "bargap": 0.25,
        "height": 110 + (34 if drawn is None else 42) * len(rows),
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "legend": ABOVE | {"traceorder": "normal"},
        "showlegend": drawn is not None,
    }
    return go.Figure(traces, layout)


def _ticks(labels: Sequence[str], chosen: int | None) -> list[str]:
    ticks = [plotly_label(label, LABEL) for label in labels]
    if chosen is not None:
        ticks[chosen] = f"<b>→ {ticks[chosen]}</b>"
    return ticks


def _logits(rows: list[int], logits: Sequence[float], decimals: int) -> go.Bar:
    below = colorscale("score")[0][1]  # the colour of its lower end
    return go.Bar(
        y=rows,
        x=list(logits),
        orientation="h",
        marker={"color": [SCORE if logit >= 0 else below for logit in logits]},
        texttemplate=f"%{{x:.{min(decimals, 2)}f}}",
        textposition="auto",
        cliponaxis=False,
        showlegend=False,
        hovertemplate=f"logit %{{x:.{decimals}f}}<extra></extra>",
        width=0.7,
    )


def _shares(rows: list[int], name: str, bars: Bars, colour: str) -> go.Bar:
    shares = bars.all
    return go.Bar(
        xaxis="x2",
        yaxis="y2",
        y=rows,
        x=shares,
        name=name,
        orientation="h",
        marker={"color": colour},
        text=[_written(share, bars.error) for share in shares],
        textposition=["inside" if share > LEGIBLE else "outside" for share in shares],
        insidetextfont={"color": "white"},
        constraintext="none",
        cliponaxis=False,
        hovertext=[f"{name}: {probability(share, bars.error, most=6)}" for share in shares],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _written(share: float, error: float) -> str:
    if share == 0:
        return "cut"
    return "&lt;0.0001" if share < 0.00005 else probability(share, error)


def _room(logits: Sequence[float]) -> dict[str, object]:
    """Both ends of the logits' axis, with room for a number beside a short bar."""
    low, high = min([*logits, 0.0]), max([*logits, 0.0])
    room = 0.25 * ((high - low) or 1.0)
    return {"range": [low - (room if low < 0 else 0), high + (room if high > 0 else 0)]}
