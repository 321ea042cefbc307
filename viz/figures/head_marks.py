"""Tiles that can be clicked: one invisible mark for each head, and a frame around the chosen one."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from viz.figures.chart import marks
from viz.figures.heatmap import INK
from viz.notation.theme import HEADS

Cell = tuple[int, int]  # (layer, head)


@dataclass(frozen=True)
class Pitch:
    """The positions of the tiles (layer, head) in the figure's units."""

    middle: tuple[float, float]  # of tile (0, 0): x, y
    step: tuple[float, float]  # to the next head, to the next layer
    half: tuple[float, float]  # of a tile's width and height

    def at(self, cell: Cell) -> tuple[float, float]:
        """The middle of a tile: x, y."""
        layer, head = cell
        return self.middle[0] + head * self.step[0], self.middle[1] + layer * self.step[1]

    def corners(self, cell: Cell) -> tuple[float, float, float, float]:
        """Left, right, top and bottom of a tile."""
        (x, y), (wide, high) = self.at(cell), self.half
        return x - wide, x + wide, y - high, y + high


CELLS = Pitch((0.0, 0.0), (1.0, 1.0), (0.5, 0.5))  # of a plain heatmap


def hue_of(head: int, heads: int, groups: int) -> str:
    """The colour of a head among others; heads that share a head of keys and values have one colour."""
    return HEADS[(head * groups // heads) % len(HEADS)]


def add_marks(
    figure: go.Figure,
    cells: Sequence[Cell],
    pitch: Pitch,
    *,
    words: Sequence[str],
    chosen: Cell | None,
) -> None:
    """Adds the trace "heads", whose points are numbered as the cells; a click anywhere in the
    figure chooses the nearest. words: what hovering says, as Plotly may draw it."""
    places = [pitch.at(cell) for cell in cells]
    unseen = {"marker": {"opacity": 0}}
    figure.add_trace(
        marks(
            [x for x, _ in places],
            [y for _, y in places],
            name="heads",
            marker={"size": 14, "symbol": "square", "opacity": 0},
            selected=unseen,
            unselected=unseen,
            text=list(words),
            hover="%{text}",
        )
    )
    if chosen is not None:
        frame(figure, pitch, chosen)
    layout = figure.layout
    layout.clickmode, layout.dragmode = "event+select", False
    layout.hovermode, layout.hoverdistance = "closest", -1


def frame(figure: go.Figure, pitch: Pitch, cell: Cell, dash: str = "solid") -> None:
    """A frame around a tile."""
    left, right, top, bottom = pitch.corners(cell)
    line = {"color": INK, "width": 2.5, "dash": dash}
    figure.add_shape(type="rect", x0=left, x1=right, y0=top, y1=bottom, line=line)
