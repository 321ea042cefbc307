"""Curves over the depth of a model, over positions, training steps and widths."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from model.arithmetic.normalization import shrinkage
from viz.figures.chart import chart, line, marks, titled
from viz.notation.theme import FEED_FORWARD, MASKED, OUTPUT, STREAM, WEIGHT, rgba

_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
# Okabe and Ito's palette without the colours that stand for query, key and value; without grey, which is
# what is masked.
COLOURS = ("#CC79A7", "#56B4E9", "#E69F00", "#8A5A44", "#8E6BBF", "#B2A000")
_LOOKS = ((WEIGHT, "solid"), (WEIGHT, "dash"), (FEED_FORWARD, "solid"), (FEED_FORWARD, "dot"))
_WIDTHS = np.unique(np.round(np.geomspace(2, 4096, 120)))
_OTHERS = (4, 512)  # widths that are marked beside the model's own


def likeness_lines(
    word: NDArray[np.floating], others: NDArray[np.floating] | None, *, states: Sequence[str]
) -> go.Figure:
    """Cosines (state,) of one word's vectors in two sentences, and the mean with other tokens, if there
    are any. Raises ValueError if states and cosines are not equally many."""
    if word.shape != (len(states),):
        raise ValueError(f"{word.shape} cosines for {len(states)} states.")
    drawn = [("the word in both sentences", word, STREAM, "solid")]
    if others is not None:
        drawn.append(("the word and the other tokens, mean", others, MASKED, "dot"))
    places = list(range(len(states)))
    lines = [
        line(
            places,
            cosines,
            name,
            colour,
            dash=dash,
            mode="lines+markers",
            hovertext=list(states),
            hover="%{hovertext}<br>cosine %{y:.4f}",
        )
        for name, cosines, colour, dash in drawn
    ]
    lowest = min(0.0, *(float(cosines.min()) for _, cosines, _, _ in drawn))
    ticks = {"tickvals": places, "ticktext": list(states), "tickangle": -40, "showgrid": False}
    across = titled("state of the stream", **ticks)
    return chart(lines, across, titled("cosine similarity", range=[1.1 * lowest, 1.06]), height=430)


def gradient_by_depth(with_shortcuts: Sequence[float], without: Sequence[float]) -> go.Figure:
    """The gradient at each state of a deep stack, in powers of ten; entry 0 is the input of the stack."""
    lines = [
        line(
            list(range(len(sizes))),
            list(sizes),
            name,
            colour,
            dash=dash,
            mode="lines+markers",
            marker={"size": 5},
            hover="before block %{x}: %{y:.2e}",
        )
        for name, sizes, colour, dash in (
            ("with shortcuts: x + f(x)", with_shortcuts, STREAM, "solid"),
            ("without: f(x)", without, MASKED, "dash"),
        )
    ]
    up = titled("size of the gradient", type="log", exponentformat="power", nticks=8)
    return chart(lines, titled("blocks passed, from input to loss"), up, height=420)


def position_curves(
    table: NDArray[np.floating], columns: Sequence[int], *, column_name: str, value_name: str
) -> go.Figure:
    """table (position, column): one curve for each of the chosen columns."""
    lines = [
        line(
            list(range(len(table))),
            table[:, column],
            f"{column_name} {column}",
            COLOURS[number % len(COLOURS)],
            dash=_DASHES[number % len(_DASHES)],
            mode="lines+markers" if len(table) <= 32 else "lines",
            marker={"size": 4},
            width=2,
            hover=f"{column_name} {column}, position %{{x}}<br>%{{y:.4f}}",
        )
        for number, column in enumerate(columns)
    ]
    across = titled("position", rangemode="tozero")
    return chart(lines, across, titled(value_name), height=430, showlegend=True)


def bias_curves(
    distances: Sequence[int],
    values: NDArray[np.floating],
    *,
    chosen: int,
    first: int = 0,
    stairs: bool = False,
    mark: int | None = None,
) -> go.Figure:
    """values (head, distance): one curve a head, the chosen one strong.

    first: the first head's number. stairs: as steps, each as wide as its distance. mark: a distance, marked.
    """
    lines = [
        line(
            distances,
            curve,
            f"head {first + head}",
            COLOURS[head % len(COLOURS)],
            dash=_DASHES[head // len(COLOURS) % len(_DASHES)],
            width=4 if first + head == chosen else 1.5,
            hover=f"head {first + head}, distance %{{x}}<br>bias %{{y:.4f}}",
        ).update(line_shape="hvh" if stairs else "linear")
        for head, curve in enumerate(values)
    ]
    across = titled("distance: position of the key − position of the query")
    figure = chart(lines, across, titled("added to the score"), height=430, showlegend=True)
    if mark is not None:
        figure.add_vline(mark, line={"dash": "dot", "color": MASKED})
    return figure


@dataclass(frozen=True)
class Curve:
    """Values at some training steps."""

    steps: Sequence[int]
    values: Sequence[float]


def training_curves(losses: Mapping[str, Curve], scores: Mapping[str, Curve]) -> go.Figure:
    """Losses (nats a token) above, scores (0 to 1) below, against the same steps."""
    looks = [(OUTPUT, dash) for _, dash in _LOOKS]
    traces = [
        line(
            curve.steps,
            curve.values,
            name,
            colour,
            dash=dash,
            mode="lines+markers",
            marker={"size": 5},
            width=2,
            yaxis=axis,
            hover=f"step %{{x}}<br>{name} %{{y:.4f}}",
        )
        for axis, curves, among in (("y", losses, looks), ("y2", scores, _LOOKS))
        for (name, curve), (colour, dash) in zip(curves.items(), cycle(among))
    ]
    above = titled("loss, nats per token", rangemode="tozero", domain=[0.54, 1])
    below = titled("score", range=[-0.03, 1.05], domain=[0, 0.46])
    return chart(traces, titled("training step", anchor="y2"), above, yaxis2=below, height=430)


@dataclass(frozen=True)
class Seeds:
    """The same measure of several runs that differ in their seed alone."""

    name: str
    steps: Sequence[int]
    values: NDArray[np.floating]  # (seed, step); NaN where a run had lost its numbers
    colour: str
    dash: str = "solid"


def first_drawn(drawn: Sequence[Seeds]) -> int:
    """Which of the measured steps a picture begins with, if it is to be hardly higher than its last two
    thirds need. The fall of the first steps would press the ends of the lines together."""
    values = np.concatenate([runs.values for runs in drawn])
    late = values[:, values.shape[1] // 3 :]
    low, high = np.nanmin(late), np.nanmax(late)
    edge = 0.1 * (high - low)
    beyond = np.flatnonzero(((values < low - edge) | (values > high + edge)).any(0))
    return int(beyond[-1]) + 1 if len(beyond) else 0


def seed_curves(drawn: Sequence[Seeds], *, measure: str) -> go.Figure:
    """For each the mean over the seeds as a line, and from the lowest to the highest seed as a band; from
    `first_drawn` on."""
    begin = first_drawn(drawn)
    drawn = [
        replace(runs, steps=runs.steps[begin:], values=runs.values[:, begin:]) for runs in drawn
    ]
    traces = []
    for runs in drawn:
        low, mean, high = runs.values.min(0), runs.values.mean(0), runs.values.max(0)
        traces.append(
            go.Scatter(
                x=[*runs.steps, *reversed(runs.steps)],
                y=[*low.tolist(), *reversed(high.tolist())],
                mode="lines",
                fill="toself",
                fillcolor=rgba(runs.colour, 0.22),
                line={"width": 0},
                hoverinfo="skip",
                showlegend=False,
            )
        )
        traces.append(
            line(
                runs.steps,
                mean.tolist(),
                runs.name,
                runs.colour,
                dash=runs.dash,
                customdata=np.stack([low, high], 1).tolist(),
                hover=f"{runs.name}, step %{{x}}<br>mean %{{y:.4f}}, "
                "seeds %{customdata[0]:.4f} to %{customdata[1]:.4f}",
            )
        )
    ends = "; ".join(f"{runs.name}: {runs.values[:, -1].mean():.3f}" for runs in drawn)
    return chart(
        traces,
        titled("training step"),
        titled(measure),
        height=380,
        meta=f"Curves of training, the mean over seeds. At the last step, {ends}.",
    )


def variance_gap(width: int) -> go.Figure:
    """The change in percent against the width d, with this model's width and two others marked."""
    hover = "d = %{x:.0f}: %{y:.3f} %"
    gaps = 100 * shrinkage(_WIDTHS)
    traces = [line(_WIDTHS, gaps, "", MASKED, width=2, hover=hover, showlegend=False)]
    others = [other for other in _OTHERS if other != width]
    for name, widths, colour in (("other widths", others, MASKED), ("this model", [width], STREAM)):
        gaps = 100 * shrinkage(np.array(widths, np.float64))
        traces.append(
            marks(
                widths,
                gaps,
                name=name,
                mode="markers+text",
                marker={"color": colour, "size": 11},
                text=[f"d = {d}: {gap:.2f} %" for d, gap in zip(widths, gaps, strict=True)],
                textposition=[_beside(d, (*_OTHERS, width)) for d in widths],
                cliponaxis=False,
                hover="%{text}",
                showlegend=True,
            )
        )
    ticks = [2, 4, 16, 64, 256, 1024, 4096]
    across = titled(
        "width d (dimensions of a token)",
        type="log",
        tickvals=ticks,
        ticktext=[str(tick) for tick in ticks],
        range=[np.log10(1.7), np.log10(9000)],
    )
    return chart(
        traces, across, titled("unbiased result smaller by, %", rangemode="tozero"), height=360
    )


def _beside(width: int, all_widths: tuple[int, ...]) -> str:
    """A label is on the right of its mark, or on the left if another mark is close by."""
    close = any(width < other < 8 * width for other in all_widths)
    return "top left" if close else "top right"
