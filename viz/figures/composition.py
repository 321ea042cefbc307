"""Which heads read what others wrote: heads as points, layer below layer, and lines between them."""

from collections.abc import Sequence
from typing import NamedTuple

import plotly.graph_objects as go

from viz.figures.chart import Axis, chart, line, marks
from viz.figures.head_marks import Cell
from viz.notation.labels import plotly_words
from viz.notation.theme import KEY, MASKED, QUERY, SCORE, VALUE, WEIGHT

COLOURS = {"Q": QUERY, "K": KEY, "V": VALUE}
SIDE = {"Q": -1, "K": 0, "V": 1}  # lines of one pair stand side by side
APART = (0.05, 0.14)  # by so much: where they leave a head, and where one reads
_APART = 9  # rows at most, between which a name has room
WIDEST = 6.0  # pixels of the line of the largest ratio


class Link(NamedTuple):
    """One line: from the head that writes to the one that reads."""

    earlier: Cell  # sub-layer and head, counted from 0
    later: Cell
    reads: str  # "Q", "K" or "V"
    ratio: float
    words: str
    short: str  # beside the widest line


def composition_graph(
    layers: Sequence[str], heads: int, links: Sequence[Link], *, chosen: Cell
) -> go.Figure:
    """links: each drawn as wide as its ratio, coloured by what reads it; the widest above the rest, named."""
    links = sorted(links, key=lambda link: link.ratio)
    largest = links[-1].ratio if links else 1.0
    traces: list[go.Scatter] = []
    named: set[str] = set()
    for link in links:
        places = (link.earlier, link.later)
        traces.append(
            line(
                [head + SIDE[link.reads] * by for (_, head), by in zip(places, APART, strict=True)],
                [layer for layer, _ in places],
                f"read by {link.reads}",
                COLOURS[link.reads],
                hover=link.words,
                width=WIDEST * link.ratio / largest,
                legendgroup=link.reads,
                showlegend=link.reads not in named,
                legendrank=list(COLOURS).index(link.reads),
                opacity=1 if link is links[-1] else 0.55,
            )
        )
        named.add(link.reads)
    cells = [(layer, head) for layer in range(len(layers)) for head in range(heads)]
    traces.append(
        marks(
            [head for _, head in cells],
            [layer for layer, _ in cells],
            hover="%{text}",
            text=[f"{layers[layer]}, head {head}" for layer, head in cells],
            name="heads",
            marker={
                "size": [18 if cell == chosen else 8 for cell in cells],
                "color": [WEIGHT if cell == chosen else MASKED for cell in cells],
            },
        )
    )
    across = Axis("head", [str(head) for head in range(heads)], tokens=False).across()
    down = Axis("", list(layers), tokens=False).down()
    height = min(max(60 * len(layers) + 110, 300), 700)
    return _name_widest(
        chart(traces, across, down, height=height, showlegend=True), links, len(layers), heads
    )


def _name_widest(figure: go.Figure, links: Sequence[Link], layers: int, heads: int) -> go.Figure:
    """Rings around both ends of the widest line, the last one, and its name where it lies on no other row."""
    if not links:
        return figure
    widest = links[-1]
    ends = (widest.earlier, widest.later)
    colour, ring = (
        COLOURS[widest.reads],
        {"symbol": "circle-open", "size": 18, "line": {"width": 3}},
    )
    places = [head for _, head in ends], [layer for layer, _ in ends]
    figure.add_trace(marks(*places, name="widest", marker=ring | {"color": colour}))
    if layers > _APART:
        return figure
    layer, head = widest.earlier
    return figure.add_annotation(
        text=f"<b>{plotly_words(widest.short)}</b>",
        x=head,
        y=layer,
        xanchor="left" if head < heads / 2 else "right",
        yshift=20,
        showarrow=False,
    )


def singular_curves(looks: Sequence[float], writes: Sequence[float]) -> go.Figure:
    """The singular values of both matrices, each as a share of its largest, the largest first."""
    lines = [
        line(
            list(range(1, len(values) + 1)),
            [value / values[0] for value in values],
            name,
            colour,
            mode="lines+markers",
            text=[f"{value:.4f}" for value in values],
            hover="number %{x}: %{text}",
        )
        for values, name, colour in ((looks, "W_Q · W_Kᵀ", SCORE), (writes, "W_V · W_O", VALUE))
    ]
    up: dict[str, object] = {"title": {"text": "share of the largest"}, "range": [0, 1.05]}
    return chart(lines, {"title": {"text": "singular value"}}, up, height=340)
