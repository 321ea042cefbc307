"""How widely the numbers of each token's vector are spread, before a norm and after it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.figures.chart import Axis, bars_across, chart, titled
from viz.notation.labels import plotly_label
from viz.notation.theme import STREAM, rgba

NUMBERED = 24  # up to so many tokens each bar has its number beside it
_PANELS = ((0.0, 0.47), (0.53, 1.0))  # of the width
_ROOM = 0.25  # of the axis, on the right of the longest bar: for its number


class Spread(NamedTuple):
    """Where the numbers of each token's vector lie, (token,) each: from centre − reach to centre + reach."""

    centre: NDArray[np.floating]
    reach: NDArray[np.floating]


def spread_bars(
    before: Spread, after: Spread, *, tokens: Sequence[str], chosen: int, measure: str
) -> go.Figure:
    """A bar for each token, on the left before a norm, on the right after it.

    Each side has a scale of its own. chosen: the token whose bars are dark. measure: what the reach is, in
    words. The points of each trace are numbered as the tokens.
    """
    titles = f"before the norm:<br>{measure}", "after it,<br>normalized"
    sides = list(enumerate(zip((before, after), titles, _PANELS, strict=True), 1))
    bars = [_bars(spread, tokens, chosen, number) for number, (spread, _, _) in sides]
    axes = [_axis(*side) for _, side in sides]
    return chart(
        bars,
        axes[0],
        Axis("token", tokens).down(),
        xaxis2=axes[1],
        height=min(max(26 * len(tokens) + 110, 200), 620),
        bargap=0.3,
        showlegend=False,
        clickmode="event+select",
        dragmode=False,
        meta=_in_words(before, after, measure),
    )


def _bars(spread: Spread, tokens: Sequence[str], chosen: int, number: int) -> go.Bar:
    steady = {"marker": {"opacity": 1}}
    names = [f"{place} {plotly_label(text, 24)}" for place, text in enumerate(tokens)]
    return bars_across(
        (2 * spread.reach).tolist(),
        [rgba(STREAM, 1 if row == chosen else 0.5) for row in range(len(tokens))],
        base=(spread.centre - spread.reach).tolist(),
        xaxis="x" if number == 1 else f"x{number}",
        text=[f"{reach:.2f}" for reach in spread.reach] if len(tokens) <= NUMBERED else None,
        textposition="outside",
        textfont={"family": "monospace", "size": 11},
        selected=steady,
        unselected=steady,
        customdata=list(zip(names, spread.centre, spread.reach, strict=True)),
        hover="choose token %{customdata[0]}<br>%{customdata[1]:.4f} ± %{customdata[2]:.4f}",
    )


def _axis(spread: Spread, title: str, panel: tuple[float, float]) -> dict[str, object]:
    low = float((spread.centre - spread.reach).min())
    high = float((spread.centre + spread.reach).max())
    room = (high - low) or 1.0
    ends = [low - 0.05 * room, high + _ROOM * room]
    return titled(
        title, domain=list(panel), range=ends, side="top", nticks=5, zeroline=True, fixedrange=True
    )


def _in_words(before: Spread, after: Spread, measure: str) -> str:
    """The picture for those who cannot see it."""
    first, then = (f"{reach.min():.2f} to {reach.max():.2f}" for _, reach in (before, after))
    return (
        f"Two rows of bars, one per token. {measure[0].upper()}{measure[1:]}: "
        f"{first} before the norm, {then} after it."
    )
