"""Drawings of how something goes: shapes of arrays, ways through networks, beams, and what a cache keeps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from model.analysis.cost.cost import WritingStep
from viz.figures.chart import (
    BARE,
    MONOSPACED,
    SLANTED,
    Axis,
    TraceStyle,
    chart,
    line,
    marks,
    note,
    note_above,
    rectangles,
    titled,
)
from viz.notation.labels import plotly_label, plotly_words, tick_positions
from viz.notation.theme import (
    CURVES,
    KEY,
    MASKED,
    PROBABILITY,
    WEIGHT,
    rgba,
)

_HIDDEN: TraceStyle = {"visible": False, "fixedrange": True}  # of an axis

# Pixels that the widest array, and all arrays one below the other, may take.
WIDE, HIGH = 460.0, 400.0
_LINE = 26.0  # pixels of an array's name above it
_GAP = 3.0  # pixels between equal matrices
_EDGE = 8  # pixels around all
_APART = 48  # so many matrices stand apart at most; more of them touch


@dataclass(frozen=True)
class DrawnArray:
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
        apart = self.count <= _APART
        return (self.count, self.columns) if apart else (1, self.count * self.columns)


def blocks(arrays: Sequence[DrawnArray]) -> go.Figure:
    """Arrays as high as they have rows, as wide as they have columns: one below the other, all to one
    scale: an area twice as large holds twice as many numbers. The unit of both axes is a pixel of a
    figure that is `WIDE` pixels wide."""
    gaps = max(_GAP * (array.drawn[0] - 1) for array in arrays)
    scale = min(
        (WIDE - gaps) / max(array.count * array.columns for array in arrays),
        HIGH / sum(array.rows for array in arrays),
    )
    traces, names, top = [], [], 0.0
    for array in arrays:
        name, words = plotly_words(array.name), plotly_words(array.words)
        # A note, for points with words are hidden where a figure is narrow.
        title = f"<b>{name}</b> {words}"
        names.append(note(title, 0, top + _LINE / 2, yanchor="middle", align="left"))
        count, columns = array.drawn
        width, height, above = columns * scale, array.rows * scale, top + _LINE
        lefts = [number * (width + _GAP) for number in range(count)]
        traces.append(
            go.Scatter(
                **rectangles([(left, left + width, above, above + height) for left in lefts]),
                mode="lines",
                fill="toself",
                fillcolor=rgba(array.colour, 0.55),
                line={"color": array.colour, "width": 1},  # where it is thinner than a pixel
                hoveron="fills",
                hoverinfo="text",
                text=f"{name}: {words}",
                name=array.name,
            )
        )
        top += 1.25 * _LINE + height
    bare = _HIDDEN | {"constrain": "domain", "automargin": False}
    across = bare | {"range": [-2, WIDE + 2], "constraintoward": "left"}
    anchored = {"scaleanchor": "x", "scaleratio": 1, "constraintoward": "top"}
    listed = "; ".join(f"{array.name}: {array.words}" for array in arrays)
    return chart(
        traces,
        across,
        bare | anchored | {"range": [top, 0]},
        height=round(top) + 2 * _EDGE,
        margin=dict.fromkeys("lrtb", _EDGE),
        showlegend=False,
        annotations=names,
        meta="Arrays drawn to one scale, as high as their rows, as wide as their columns. "
        f"{listed}.",
    )


_ARC, _CHAIN, _GRADIENTS = (0.76, 0.92), (0.53, 0.66), (0.0, 0.42)  # of the height


def paths_and_gradients(
    tokens: Sequence[str], start: int, stop: int, gradients: Mapping[str, NDArray[np.floating]]
) -> go.Figure:
    """How a token reaches another: above, the way from token `start` to token `stop`, one arc of attention,
    stop − start steps of a chain. Below, the gradient of the last output by each token (token,) of both
    networks, attention first."""
    attention, recurrent = WEIGHT, CURVES[1]
    steps = stop - start
    places = list(range(len(tokens)))
    reached = list(range(start, stop + 1))
    across = np.linspace(start, stop, 41)
    height = 1 - ((across - (start + stop) / 2) / max(steps / 2, 0.5)) ** 2
    labelled = tick_positions(len(tokens), 24)
    nodes: TraceStyle = {"marker": {"color": MASKED, "size": 6}}
    arc: TraceStyle = {"yaxis": "y2", "showlegend": False}
    chain = arc | {"yaxis": "y3"}
    look: TraceStyle = {"mode": "lines+markers", "marker": {"size": 9}}
    zeros = [0] * len(places)
    traces = [
        marks(places, zeros, **nodes | arc),
        line(across, height, "attention", attention, width=3, hover="attention: one step", **arc),
        marks(places, zeros, **nodes | chain),
        line(places, zeros, "", MASKED, width=1, hover="", **chain),
        line(
            *(reached, zeros[: len(reached)], "GRU", recurrent),
            width=4,
            hover="state after token %{x}",
            **look | chain,
        ),
        marks(
            labelled, [-0.8] * len(labelled), mode="text", text=list(map(str, labelled)), **chain
        ),
    ]
    for (name, lengths), colour in zip(gradients.items(), (attention, recurrent), strict=True):
        hover = f"{name}, token %{{x}}<br>%{{y:.3g}}"
        known = (places, lengths.tolist(), name, colour)
        traces.append(line(*known, mode="lines+markers", hover=hover))
    bare = BARE | _HIDDEN
    count = "1 step" if steps == 1 else f"{steps} steps"
    one = "1 step" if steps else "0 steps"
    return chart(
        traces,
        Axis("token", tokens).across(),
        titled("gradient", type="log", domain=list(_GRADIENTS), dtick=1),
        yaxis2=bare | {"domain": list(_ARC), "range": [-0.3, 1.2]},
        yaxis3=bare | {"domain": list(_CHAIN), "range": [-1.6, 0.8]},
        height=430,
        annotations=[
            note_above(f"attention: {one} from token to token", _ARC[1] + 0.02),
            note_above(f"GRU: {count}, one state after the other", _CHAIN[1] + 0.02),
            note_above(
                "gradient of the last output by each token, log scale", _GRADIENTS[1] + 0.02
            ),
        ],
        legend={"orientation": "h", "y": -0.2, "yanchor": "top", "x": 0.0},
        meta=f"Token {start} to token {stop}: one step of attention, {count} of a GRU.",
    )


TokenFate = Literal["kept", "dropped", "greedy"]
_MARKS: dict[TokenFate, tuple[str, str, int]] = {  # colour, symbol, size
    "kept": (PROBABILITY, "circle", 11),
    "dropped": (MASKED, "circle-open", 8),
    "greedy": (KEY, "diamond", 9),
}


@dataclass(frozen=True)
class Leaf:
    """A text at a step, by its last token."""

    step: int  # from 1
    row: int  # by its total, from the top
    kind: TokenFate
    token: str
    probability: float
    total: float  # log-probabilities, added up
    words: tuple[str, str]  # both with the digits that are certain
    before: int  # the row of the text that it continues, at the step before


DrawnPath = Sequence[tuple[int, int]]  # step and row, from (0, 0) on


def beam_tree(
    leaves: Sequence[Leaf], start: str, *, best: DrawnPath, greedy: DrawnPath
) -> go.Figure:
    """The texts that a beam search kept and dropped, as a tree, with the greedy text in it.

    start: the token before the first step. best: where the beam search's text lies. greedy: the same of
    the greedy one."""
    steps, rows = max(leaf.step for leaf in leaves), max(leaf.row for leaf in leaves) + 1
    longest = max(40 // (steps + 1), 6)  # letters, so that neighbours do not touch on a phone
    branches, ends = [], []
    for kind, (colour, symbol, size) in _MARKS.items():
        among = [leaf for leaf in leaves if leaf.kind == kind]
        branches.append(
            marks(
                [at for leaf in among for at in (leaf.step - 1, leaf.step, None)],
                [at for leaf in among for at in (leaf.before, leaf.row, None)],
                mode="lines",
                line={"color": colour, "width": 1},
                opacity=0.4 if kind == "dropped" else 1,
            )
        )
        known = [[plotly_label(leaf.token), *map(plotly_words, leaf.words)] for leaf in among]
        ends.append(
            marks(
                [leaf.step for leaf in among],
                [leaf.row for leaf in among],
                mode="markers+text",
                name=kind,
                showlegend=kind != "greedy",
                text=[
                    "<br>".join([plotly_label(leaf.token, longest), *words])
                    for leaf, (_, *words) in zip(among, known, strict=True)
                ],
                textposition="bottom center",
                textfont=MONOSPACED | {"size": 13},
                marker={"color": colour, "symbol": symbol, "size": size},
                cliponaxis=False,
                customdata=known,
                hover="%{customdata[0]}<br>probability %{customdata[1]}<br>"
                "total log-probability %{customdata[2]}",
            )
        )
    paths = [
        line(
            [step for step, _ in path],
            [row for _, row in path],
            *(name, colour),
            hover=name,
            dash=dash,
            width=width,
        )
        for path, name, colour, dash, width in (
            (best, "best beam", PROBABILITY, "solid", 5),
            (greedy, "greedy", KEY, "dash", 2.5),
        )
    ]
    root = marks([0], [0], marker={"color": PROBABILITY, "size": 11})
    across = Axis("step", [start, *map(str, range(1, steps + 1))], longest=longest + 2).across()
    up = BARE | {"visible": False, "range": [rows - 0.15, -0.3]}
    token_at = {(leaf.step, leaf.row): plotly_label(leaf.token) for leaf in leaves}
    words = " → ".join(token_at[place] for place in best[1:] if place in token_at)
    return chart(
        [trace for trace in (*branches, *paths, *ends, root) if trace.x],
        across,
        up,
        height=58 * rows + 110,  # pixels of a row, and of the axis and the legend
        meta=f"Tree of {steps} steps with the texts kept and dropped. The best: {words}.",
    )


_COLUMNS = 24  # of the last tokens; the others would make the cells too narrow
_CELL, _TITLE, _AROUND = 16, 24, 180  # pixels: a row, a panel's title, the legend and the tokens
_NOW, _BEFORE, _IN_SOME, _DROPPED = 1, 2, 3, 4  # states of a cell
_STATES = {
    _NOW: ("computed now", KEY),
    _BEFORE: ("kept", rgba(KEY, 0.32)),
    _IN_SOME: ("kept in some layers", rgba(KEY, 0.14)),
    _DROPPED: ("dropped", rgba(MASKED, 0.14)),
}
_WITHOUT = {_NOW: _STATES[_NOW], _BEFORE: ("computed again", MASKED)}


def staircase(
    steps: Sequence[WritingStep], tokens: Sequence[str], read: Sequence[Sequence[int]]
) -> go.Figure:
    """Writing as a staircase: of which tokens keys and values are kept, and of which they are computed. Rows
    are steps, columns the last of the tokens; above with a cache, below without one.

    read: of each step the keys that are there for its last token, by layer: what a sliding window hides is
    dropped.
    """
    first = max(len(tokens) - _COLUMNS, 0)
    at = np.arange(first, len(tokens))
    cells = np.full((len(steps), len(at)), np.nan, np.float32)
    for row, step, keys in zip(cells, steps, read, strict=True):
        row[at < step.tokens] = _NOW
        before = at < step.kept
        has = (step.tokens - at[before, None] <= np.array(keys)).mean(1)  # share of the layers
        row[before] = np.where(has == 1, _BEFORE, np.where(has > 0, _IN_SOME, _DROPPED))
    inner = 2 * _CELL * len(steps) + 2 * _TITLE
    above, below = [1 - (inner / 2 - _TITLE) / inner, 1.0], [0.0, (inner / 2 - _TITLE) / inner]
    steps_of = [str(number + 1) for number in range(len(steps))]
    rows = Axis("step", steps_of, tokens=False).down()
    name = f"token (the last {len(at)} of {len(tokens)})" if first else "token"
    labels = Axis(name, list(tokens)[first:]).across(
        range=[-0.5, len(at) - 0.5], tickangle=SLANTED, anchor="y2"
    )
    named = [f"{first + place} {plotly_label(text)}" for place, text in enumerate(tokens[first:])]
    shown = [state for state in _STATES if state == _BEFORE or (cells == state).any()]
    panels = (
        _stairs(cells, named, "y", {state: _STATES[state] for state in shown}),
        _stairs(np.where(cells > _BEFORE, _BEFORE, cells), named, "y2", _WITHOUT),
    )
    square = {"symbol": "square", "size": 12}
    entries = [
        marks([None], [None], name=name, marker=square | {"color": colour}, showlegend=True)
        for name, colour in [*(_STATES[state] for state in shown), _WITHOUT[_BEFORE]]
    ]
    last = steps[-1]
    kept = f"those of the {last.kept} others are kept"
    if (cells[-1] > _BEFORE).any():
        kept += ", but for what a sliding window drops"
    return chart(
        [*panels, *entries],
        labels,
        rows | {"domain": above},
        height=inner + _AROUND,
        yaxis2=rows | {"domain": below},
        annotations=[note_above("with the cache", 1.0), note_above("without it", below[1])],
        legend={"orientation": "h", "x": 0, "y": 1 + _TITLE / inner, "yanchor": "bottom"},
        meta=f"A staircase of {len(steps)} steps. In step {len(steps)} the keys and values of "
        f"{last.new} of {last.tokens} tokens are computed; {kept}, "
        "and without a cache they are computed again.",
    )


def _stairs(
    cells: NDArray[np.float32],
    named: Sequence[str],
    axis: str,
    states: Mapping[int, tuple[str, str]],
) -> go.Heatmap:
    """One panel. states: what each is called, and its colour."""
    hover = [
        [
            f"step {step + 1}, {name}: {states[state][0] if state in states else ''}"
            for name, state in zip(named, row.tolist(), strict=True)
        ]
        for step, row in enumerate(cells)
    ]
    colours = [states.get(state, states[_NOW])[1] for state in _STATES]
    return go.Heatmap(
        z=cells,
        yaxis=axis,
        zmin=_NOW,
        zmax=_DROPPED,
        colorscale=[[place / (len(colours) - 1), one] for place, one in enumerate(colours)],
        showscale=False,
        hoverongaps=False,
        xgap=1,
        ygap=1,
        hovertext=hover,
        hovertemplate="%{hovertext}<extra></extra>",
    )
