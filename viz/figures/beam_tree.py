"""The texts that a beam search kept and dropped, as a tree, with the greedy text in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import plotly.graph_objects as go

from viz.figures.chart import BARE, MONOSPACED, Axis, chart, line, marks
from viz.notation.labels import plotly_label, plotly_words
from viz.notation.theme import KEY, MASKED, WEIGHT

Kind = Literal["kept", "dropped", "greedy"]
_ROW, _ROUND = 58, 110  # pixels of a row, and of the axis and the legend
_LETTERS = 40  # of a label, shared by the steps, so that neighbours do not touch on a phone
_MARKS: dict[Kind, tuple[str, str, int]] = {  # colour, symbol, size
    "kept": (WEIGHT, "circle", 11),
    "dropped": (MASKED, "circle-open", 8),
    "greedy": (KEY, "diamond", 9),
}


@dataclass(frozen=True)
class Leaf:
    """A text at a step, by its last token."""

    step: int  # from 1
    row: int  # by its total, from the top
    kind: Kind
    token: str
    probability: float
    total: float  # log-probabilities, added up
    words: tuple[str, str]  # both with the digits that are certain
    before: int  # the row of the text that it continues, at the step before


Path = Sequence[tuple[int, int]]  # step and row, from (0, 0) on


def beam_tree(leaves: Sequence[Leaf], start: str, *, best: Path, greedy: Path) -> go.Figure:
    """start: the token before the first step. best: where the beam search's text lies. greedy: the same of
    the greedy one."""
    steps, rows = max(leaf.step for leaf in leaves), max(leaf.row for leaf in leaves) + 1
    longest = max(_LETTERS // (steps + 1), 6)
    traces = [
        *(_edges([leaf for leaf in leaves if leaf.kind == kind], kind) for kind in _MARKS),
        _path(best, "best beam", WEIGHT, "solid", 5),
        _path(greedy, "greedy", KEY, "dash", 2.5),
        *(
            _leaves([leaf for leaf in leaves if leaf.kind == kind], kind, longest)
            for kind in _MARKS
        ),
        marks([0], [0], marker={"color": WEIGHT, "size": 11}),
    ]
    across = Axis("step", [start, *map(str, range(1, steps + 1))], longest=longest + 2).across()
    up = BARE | {"visible": False, "range": [rows - 0.15, -0.3]}
    words = " → ".join(
        plotly_label(leaf.token) for step, row in best[1:] for leaf in _at(leaves, step, row)
    )
    return chart(
        [trace for trace in traces if trace.x],
        across,
        up,
        height=_ROW * rows + _ROUND,
        meta=f"Tree of {steps} steps with the texts kept and dropped. The best: {words}.",
    )


def _at(leaves: Sequence[Leaf], step: int, row: int) -> list[Leaf]:
    return [leaf for leaf in leaves if (leaf.step, leaf.row) == (step, row)]


def _edges(leaves: Sequence[Leaf], kind: Kind) -> go.Scatter:
    across: list[int | None] = []
    down: list[int | None] = []
    for leaf in leaves:
        across += [leaf.step - 1, leaf.step, None]
        down += [leaf.before, leaf.row, None]
    colour, _, _ = _MARKS[kind]
    return line(
        across,
        down,
        "",
        colour,
        hover="",
        width=1,
        showlegend=False,
        hoverinfo="skip",
        opacity=0.4 if kind == "dropped" else 1,
    )


def _path(path: Path, name: str, colour: str, dash: str, width: float) -> go.Scatter:
    steps, rows = zip(*path, strict=True)
    return line(steps, rows, name, colour, hover=name, dash=dash, width=width)


def _leaves(leaves: Sequence[Leaf], kind: Kind, longest: int) -> go.Scatter:
    colour, symbol, size = _MARKS[kind]
    return marks(
        [leaf.step for leaf in leaves],
        [leaf.row for leaf in leaves],
        mode="markers+text",
        name=kind,
        showlegend=kind != "greedy",
        text=[
            "<br>".join([plotly_label(leaf.token, longest), *map(plotly_words, leaf.words)])
            for leaf in leaves
        ],
        textposition="bottom center",
        textfont=MONOSPACED | {"size": 10},
        marker={"color": colour, "symbol": symbol, "size": size},
        cliponaxis=False,
        customdata=[[plotly_label(leaf.token), *map(plotly_words, leaf.words)] for leaf in leaves],
        hover="%{customdata[0]}<br>probability %{customdata[1]}<br>total log-probability %{customdata[2]}",
    )
