"""Sliding windows over a text: for each its tokens, and below them its target, moved on by one."""

from collections.abc import Sequence

import plotly.graph_objects as go

from model.analysis.tokens.windows import Window
from viz.figures.token_rows import frame_row
from viz.notation.labels import plotly_label, tick_positions

LABEL = 9  # characters
WRITTEN = 16  # up to so many tokens their texts stand in the bars
INPUT, TARGET, INK = "#DDA6C3", "#C6C6CD", "#1B1B20"  # areas that dark letters stand on
BAR = 0.38  # height, of a row of height 1


def sliding_windows(
    found: Sequence[Window[int]], texts: Sequence[str], *, chosen: int | None = None
) -> go.Figure:
    """Windows of positions over the tokens `texts`; each is one row of two bars.

    chosen: the number, in `found`, of the window that is framed.
    """
    end = max(window.start + len(window.inputs) for window in found) + 1
    written = end <= WRITTEN
    figure = go.Figure()
    figure.add_trace(_bars(found, "input", INPUT, 0))
    figure.add_trace(_bars(found, "target: the same, moved on by one", TARGET, 1))
    if written:
        figure.add_trace(_texts(found, texts))
    if chosen is not None:
        frame_row(figure, chosen, end, inset=0.02)
    _lay_out(figure, end, texts, written=written)
    figure.update_yaxes(
        title={"text": "window"},
        tickvals=list(range(len(found))),
        range=[len(found) - 0.4, -0.6],
        showgrid=False,
        zeroline=False,
    )
    figure.update_layout(
        barmode="overlay",
        height=min(150 + 46 * len(found), 640),
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        legend={"orientation": "h", "y": -0.04, "yanchor": "top"},
    )
    return figure


def _lay_out(figure: go.Figure, end: int, texts: Sequence[str], *, written: bool) -> None:
    """Positions from left to right; with their tokens, where these do not stand in the bars."""
    ticks = tick_positions(end)
    figure.update_xaxes(
        title={"text": "position" if written else "position and token"},
        tickvals=ticks,
        ticktext=[
            str(place) if written else f"{place} {plotly_label(texts[place], LABEL)}"
            for place in ticks
        ],
        tickfont={"family": "monospace"},
        range=[-0.6, end - 0.4],
        side="top",
        showgrid=False,
        zeroline=False,
    )


def _bars(found: Sequence[Window[int]], name: str, colour: str, shift: int) -> go.Bar:
    offset = BAR / 2 * (1 if shift else -1)
    return go.Bar(
        name=name,
        x=[len(window.inputs) for window in found],
        base=[window.start + shift - 0.5 for window in found],
        y=[number + offset for number in range(len(found))],
        width=BAR,
        orientation="h",
        marker={"color": colour},
        hovertext=[
            f"window {number}, {'target' if shift else 'input'}: positions {window.start + shift} to "
            f"{window.start + shift + len(window.inputs) - 1}"
            for number, window in enumerate(found)
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _texts(found: Sequence[Window[int]], texts: Sequence[str]) -> go.Scatter:
    """The tokens within the bars."""
    cells = [
        (place, number + offset)
        for number, window in enumerate(found)
        for places, offset in ((window.inputs, -BAR / 2), (window.target, BAR / 2))
        for place in places
    ]
    return go.Scatter(
        x=[place for place, _ in cells],
        y=[row for _, row in cells],
        text=[plotly_label(texts[place], LABEL) for place, _ in cells],
        mode="text",
        textfont={"family": "monospace", "size": 11, "color": INK},
        hoverinfo="skip",
        showlegend=False,
    )
