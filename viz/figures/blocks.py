"""Arrays drawn to one scale: as high as they have rows, as wide as they have columns."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from viz.figures.chart import chart
from viz.notation.labels import plotly_words
from viz.notation.theme import rgba

# Pixels that the widest array, and all arrays one below the other, may take.
WIDE, HIGH = 460.0, 400.0
LINE = 26.0  # pixels of an array's name above it
GAP = 3.0  # pixels between equal matrices
EDGE = 8  # pixels around all
APART = 48  # so many matrices stand apart at most; more of them touch


@dataclass(frozen=True)
class Block:
    """One array: `count` equal matrices side by side, and the words above them."""

    name: str
    count: int
    rows: int
    columns: int
    words: str
    colour: str

    @property
    def drawn(self) -> tuple[int, int]:
        """How many matrices are drawn apart, and how many columns each has."""
        return (self.count, self.columns) if self.count <= APART else (1, self.count * self.columns)


def blocks(arrays: Sequence[Block]) -> go.Figure:
    """One row an array, from the top down, all to one scale: an area twice as large holds twice as many
    numbers. The unit of both axes is a pixel of a picture that is `WIDE` pixels wide."""
    gaps = max(GAP * (array.drawn[0] - 1) for array in arrays)
    scale = min(
        (WIDE - gaps) / max(array.count * array.columns for array in arrays),
        HIGH / sum(array.rows for array in arrays),
    )
    traces, names, top = [], [], 0.0
    for array in arrays:
        names.append(_name(array, top + LINE / 2))
        traces.append(_matrices(array, top + LINE, scale))
        top += 1.25 * LINE + array.rows * scale
    bare = {"visible": False, "fixedrange": True, "constrain": "domain", "automargin": False}
    across = bare | {"range": [-2, WIDE + 2], "constraintoward": "left"}
    anchored = {"scaleanchor": "x", "scaleratio": 1, "constraintoward": "top"}
    return chart(
        traces,
        across,
        bare | anchored | {"range": [top, 0]},
        height=round(top) + 2 * EDGE,
        margin=dict.fromkeys("lrtb", EDGE),
        showlegend=False,
        annotations=names,
        meta=_in_words(arrays),
    )


def _in_words(arrays: Sequence[Block]) -> str:
    """The picture for those who cannot see it."""
    listed = "; ".join(f"{array.name}: {array.words}" for array in arrays)
    return f"Arrays drawn to one scale, as high as their rows, as wide as their columns. {listed}."


def _name(array: Block, place: float) -> dict[str, object]:
    """The line above an array. A note, for points with words are hidden where a picture is narrow."""
    words = f"<b>{plotly_words(array.name)}</b> {plotly_words(array.words)}"
    ends = {"xanchor": "left", "yanchor": "middle", "showarrow": False}
    return {"x": 0, "y": place, "text": words, "align": "left"} | ends


def _matrices(array: Block, top: float, scale: float) -> go.Scatter:
    """The outlines of equal matrices, filled: at least a line where they are thinner than a pixel."""
    count, columns = array.drawn
    width, height = columns * scale, array.rows * scale
    x: list[float | None] = []
    y: list[float | None] = []
    for number in range(count):
        left = number * (width + GAP)
        x += [left, left + width, left + width, left, left, None]
        y += [top, top, top + height, top + height, top, None]
    return go.Scatter(
        x=x,
        y=y,
        mode="lines",
        fill="toself",
        fillcolor=rgba(array.colour, 0.55),
        line={"color": array.colour, "width": 1},
        hoveron="fills",
        hoverinfo="text",
        text=f"{plotly_words(array.name)}: {plotly_words(array.words)}",
        name=array.name,
    )
