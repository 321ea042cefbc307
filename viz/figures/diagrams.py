"""Drawings of how something goes: shapes of arrays, ways through networks, beams, and what a cache keeps."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from model.analysis.cost.cost import WritingStep
from viz.figures.chart import (
    BARE,
    SLANTED,
    Axis,
    TraceStyle,
    bars_across,
    chart,
    line,
    marks,
    note,
    note_above,
    rectangles,
    titled,
)
from viz.notation.labels import plotly_label, tick_positions
from viz.notation.theme import (
    CURVES,
    KEY,
    MASKED,
    STREAM,
    WEIGHT,
    rgba,
)
from viz.notation.words import sentences_of

say = sentences_of("figures.diagrams")

_HIDDEN: TraceStyle = {"visible": False, "fixedrange": True}  # of an axis

# Pixels that the widest array, and all arrays one below the other, may take.
WIDE, HIGH = 700.0, 260.0  # pixels of a drawing to scale, at most


def to_scale(length: int, width: int, heads: int) -> go.Figure:
    """The vectors of a text, one row of `width` numbers for each token, and the table of pairs of each head,
    as high and wide as they have rows and columns: an area twice as large holds twice as many numbers. The
    tables stand where the drawing is largest, beside the vectors or under them."""
    gap, step = 0.06 * max(width, length), 1.04 * length

    def extent(across: int, is_under: bool) -> tuple[float, float]:
        wide = (across - 1) * step + length
        high = (math.ceil(heads / across) - 1) * step + length
        if is_under:
            return max(float(width), wide), length + gap + high
        return width + gap + wide, max(float(length), high)

    def scale(way: tuple[int, bool]) -> float:
        right, down = extent(*way)
        return min(WIDE / right, HIGH / down)

    ways = [(across, is_under) for across in range(heads, 0, -1) for is_under in (True, False)]
    across, is_under = max(ways, key=scale)
    (right, down), pixels = extent(across, is_under), scale((across, is_under))
    first = (0.0, length + gap) if is_under else (width + gap, 0.0)
    squares = [
        (left, left + length, top, top + length)
        for head in range(heads)
        for left in [first[0] + (head % across) * step]
        for top in [first[1] + (head // across) * step]
    ]
    shown = (
        (
            [(0.0, float(width), 0.0, float(length))],
            STREAM,
            f"n × d = {length:,} × {width:,} = {length * width:,}",
            "vectors",
        ),
        (
            squares,
            WEIGHT,
            f"h × n × n = {heads} × {length:,} × {length:,} = {heads * length**2:,}",
            "attention weights",
        ),
    )
    traces = [
        go.Scatter(
            **rectangles(sides),
            mode="lines",
            fill="toself",
            fillcolor=rgba(colour, 0.55),
            line={"color": colour, "width": 1},  # where it is thinner than a pixel
            hoveron="fills",
            hoverinfo="text",
            text=f"{name}: {words}",
            name=name,
        )
        for sides, colour, words, name in shown
    ]
    bare = _HIDDEN | {"constrain": "domain"}
    names = [
        note(
            f'<span style="color:{colour}">■</span> <b>{name}</b> {words}',
            0,
            1,
            xref="paper",
            yref="paper",
            yanchor="bottom",
            yshift=8 + 22 * (1 - place),
        )
        for place, (_, colour, words, name) in enumerate(shown)
    ]
    return chart(
        traces,
        bare | {"range": [0, right], "constraintoward": "left"},
        bare | {"range": [down, 0], "scaleanchor": "x", "scaleratio": 1, "constraintoward": "top"},
        height=round(72 + max(pixels * down, 24)),
        margin={"l": 8, "r": 8, "t": 56, "b": 8},
        showlegend=False,
        annotations=names,
        meta=say("drawn_scale") + "; ".join(f"{name}: {words}" for _, _, words, name in shown),
    )


_ARC, _CHAIN, _GRADIENTS = (0.76, 0.92), (0.53, 0.66), (0.0, 0.42)  # of the height


def paths_and_gradients(
    tokens: Sequence[str], start: int, stop: int, gradients: Mapping[str, NDArray[np.floating]]
) -> go.Figure:
    """How a token reaches another: above, the way from one token to the other, one arc of attention,
    stop − start steps of a chain. Below, the gradient of the last output by each token.

    Args:
        start, stop: positions, from 0; start is not behind stop.
        gradients: (token,) by network, attention first.
    """
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
            note_above(say("attention_token_token", one=one), _ARC[1] + 0.02),
            note_above(say("gru_state_after", count=count), _CHAIN[1] + 0.02),
            note_above(say("gradient_last_output"), _GRADIENTS[1] + 0.02),
        ],
        legend={"orientation": "h", "y": -0.2, "yanchor": "top", "x": 0.0},
        meta=say("token_token_step", start=start, stop=stop, count=count),
    )


_COLUMNS = 40  # of the last tokens; the others would make the cells too narrow
_CELL, _HEAD, _FOOT = 22, 56, 84  # pixels: a row, what stands above the rows, the tokens below them
_NOW, _BEFORE, _IN_SOME, _DROPPED = 1, 2, 3, 4  # states of a cell
_STATES = {
    _NOW: ("computed now", KEY),
    _BEFORE: ("kept", rgba(KEY, 0.32)),
    _IN_SOME: (say("kept_some_layers"), rgba(KEY, 0.14)),
    _DROPPED: ("dropped", rgba(MASKED, 0.14)),
}


@dataclass(frozen=True)
class StepBars:
    """A number of each step, and over it, outlined, another one."""

    title: str
    values: Sequence[float]
    colour: str
    other: Sequence[float] = ()
    other_name: str = ""

    def last(self, count: int) -> "StepBars":
        return replace(self, values=self.values[-count:], other=self.other[-count:])


def staircase(
    steps: Sequence[WritingStep],
    tokens: Sequence[str],
    there: Sequence[NDArray[np.floating]],
    bars: Sequence[StepBars],
    *,
    first: int = 0,
) -> go.Figure:
    """Writing as a staircase: of which tokens keys and values are kept, and of which they are computed. Rows
    are steps, columns the last of the tokens; at the right what each step takes.

    Args:
        there: of each step the share of the layers, (token,), that have a token's key for the last one.
        bars: one or two; those that have an outline have one of the same name.
        first: steps before these.
    """
    hidden = max(len(tokens) - _COLUMNS, 0)
    at = np.arange(hidden, len(tokens))
    cells = np.full((len(steps), len(at)), np.nan, np.float32)
    for row, step, share in zip(cells, steps, there, strict=True):
        row[at < step.tokens] = _NOW
        before = at < step.kept
        has = share[at[before]]
        row[before] = np.where(has == 1, _BEFORE, np.where(has > 0, _IN_SOME, _DROPPED))
    steps_of = [str(first + number + 1) for number in range(len(steps))]
    rows = Axis("step", steps_of, tokens=False).down(fixedrange=True)
    name = say("last_tokens", at=len(at), tokens=len(tokens)) if hidden else ""
    wide = {1: 0.64, 2: 0.5}[len(bars)]
    labels = Axis(name, list(tokens)[hidden:]).across(
        range=[-0.5, len(at) - 0.5], tickangle=SLANTED, domain=[0, wide], fixedrange=True
    )
    named = [f"{hidden + place} {plotly_label(text)}" for place, text in enumerate(tokens[hidden:])]
    shown = [state for state in _STATES if state == _BEFORE or (cells == state).any()]
    traces: list[go.Heatmap | go.Bar | go.Scatter] = [
        _stairs(cells, named, {state: _STATES[state] for state in shown})
    ]
    layout: dict[str, object] = {}
    outlined = [one.other_name for one in bars if one.other][:1]
    key = "  ".join(
        [*(_square(*_STATES[state]) for state in shown), *(f"□ {one}" for one in outlined)]
    )
    above = {"xref": "paper", "yref": "paper", "yanchor": "bottom"}
    notes = [note(key, 0, 1, **above, yshift=22)]
    width = (1 - wide) / len(bars)
    for place, one in enumerate(bars):
        axis, left = str(place + 2), wide + place * width + 0.03
        most = max([*one.values, *one.other, 1e-9])
        layout[f"xaxis{axis}"] = _HIDDEN | {
            "domain": [left, left + width - 0.03],
            "range": [0, most],
        }
        traces += _step_bars(one, steps_of, f"x{axis}")
        notes.append(note(f"<b>{one.title}</b>", left, 1, **above))
    last = steps[-1]
    kept = say("others_kept", kept=last.kept)
    if (cells[-1] > _BEFORE).any():
        kept += say("dropped")
    return chart(
        traces,
        labels,
        rows,
        height=_CELL * len(steps) + _HEAD + _FOOT,
        margin={"l": 8, "r": 8, "t": _HEAD, "b": 8},
        annotations=notes,
        barmode="overlay",
        bargap=0.25,
        showlegend=False,
        meta=say(
            "staircase_steps_last", steps=len(steps), new=last.new, tokens=last.tokens, kept=kept
        ),
        **layout,
    )


def _square(name: str, colour: str) -> str:
    return f'<span style="color:{colour}">■</span> {name}'


def _step_bars(one: StepBars, steps: Sequence[str], axis: str) -> list[go.Bar]:
    """The bars of one number, and over them the outlines of the other one."""
    drawn: list[tuple[str, Sequence[float], TraceStyle]] = [
        (one.title, one.values, {"color": one.colour})
    ]
    if one.other:
        outline = {"color": "rgba(0, 0, 0, 0)", "line": {"color": MASKED, "width": 1.5}}
        drawn.append((one.other_name, one.other, outline))
    return [
        bars_across(
            list(values),
            MASKED,
            hover=f"step %{{customdata}}, {name}: %{{x:,.4~g}}",
            customdata=list(steps),
            name=name,
            xaxis=axis,
        ).update(marker=look)
        for name, values, look in drawn
    ]


def _stairs(
    cells: NDArray[np.float32], named: Sequence[str], states: Mapping[int, tuple[str, str]]
) -> go.Heatmap:
    """states: what each is called, and its colour."""
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
