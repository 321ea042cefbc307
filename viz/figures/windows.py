"""Sliding windows over a text: the tokens of each, and below them its target, one position later."""

from collections.abc import Sequence

import plotly.graph_objects as go

from model.analysis.tokens.windows import Window
from viz.figures.chart import BARE, MONOSPACED, bars_across, chart, marks, titled
from viz.figures.token_rows import frame_row
from viz.notation.labels import plotly_label, tick_positions

WRITTEN = 16  # up to so many tokens their texts are written in the bars
_LABEL = 9  # characters
_INPUT, _TARGET, _INK = "#DDA6C3", "#C6C6CD", "#1B1B20"  # two pale areas, and dark letters on them
_BAR = 0.38  # height, of a row of height 1


def sliding_windows(
    found: Sequence[Window[int]], texts: Sequence[str], *, chosen: int | None = None
) -> go.Figure:
    """Windows of positions over the tokens `texts`; each is one row of two bars.

    chosen: the number, in `found`, of the window that is framed.
    """
    end = max(window.start + len(window.inputs) for window in found) + 1
    written = end <= WRITTEN
    traces = [
        _bars(found, "input", _INPUT, 0),
        _bars(found, "target: shifted by one", _TARGET, 1),
        *([_texts(found, texts)] if written else []),
    ]
    ticks = tick_positions(end)
    labels = [
        str(place) if written else f"{place} {plotly_label(texts[place], _LABEL)}"
        for place in ticks
    ]
    across = titled(
        "position" if written else "position and token",
        tickvals=ticks,
        ticktext=labels,
        tickfont=MONOSPACED,
        range=[-0.6, end - 0.4],
        side="top",
    )
    down = titled("window", tickvals=list(range(len(found))), range=[len(found) - 0.4, -0.6])
    figure = chart(
        traces,
        across | BARE,
        down | BARE,
        barmode="overlay",
        height=min(150 + 46 * len(found), 640),
        legend={"orientation": "h", "y": -0.04, "yanchor": "top"},
    )
    if chosen is not None:
        frame_row(figure, chosen, end, inset=0.02)
    return figure


def _bars(found: Sequence[Window[int]], name: str, colour: str, shift: int) -> go.Bar:
    starts = [window.start + shift for window in found]
    lengths = [len(window.inputs) for window in found]
    return bars_across(
        lengths,
        colour,
        name=name,
        base=[start - 0.5 for start in starts],
        y=[number + _BAR * (shift - 0.5) for number in range(len(found))],
        width=_BAR,
        hovertext=[
            f"window {number}, {'target' if shift else 'input'}: positions {start} to "
            f"{start + length - 1}"
            for number, (start, length) in enumerate(zip(starts, lengths, strict=True))
        ],
        hover="%{hovertext}",
    )


def _texts(found: Sequence[Window[int]], texts: Sequence[str]) -> go.Scatter:
    """The tokens within the bars."""
    cells = [
        (place, number + offset)
        for number, window in enumerate(found)
        for places, offset in ((window.inputs, -_BAR / 2), (window.target, _BAR / 2))
        for place in places
    ]
    return marks(
        [place for place, _ in cells],
        [row for _, row in cells],
        mode="text",
        text=[plotly_label(texts[place], _LABEL) for place, _ in cells],
        textfont=MONOSPACED | {"size": 11, "color": _INK},
    )
