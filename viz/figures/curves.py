"""Curves: over depth, positions, tokens, training steps, lengths and widths; activation functions."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from viz.figures.chart import DOTTED, SLANTED, Axis, chart, line, marks, note, titled
from viz.notation.labels import plotly_words
from viz.notation.numbers import fixed, signed
from viz.notation.theme import (
    CURVES,
    FEED_FORWARD,
    LESS,
    MASKED,
    MORE,
    OUTPUT,
    PROBABILITY,
    STREAM,
    WEIGHT,
    rgba,
)
from viz.notation.words import sentences_of

if TYPE_CHECKING:
    from model.analysis.stream.feed_forward import Histogram
    from model.nn.activations import ActivationLaw, Function

say = sentences_of("figures.curves")

Values = NDArray[np.floating]
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_MARKED = 32  # up to so many points each has a mark


def likeness_lines(word: Values, others: Values | None, *, states: Sequence[str]) -> go.Figure:
    """Cosines (state,) of one word's vectors in two sentences, and the mean with other tokens, if there
    are any. Raises ValueError if states and cosines are not equally many."""
    if word.shape != (len(states),):
        raise ValueError(f"{word.shape} cosines for {len(states)} states.")
    drawn = [(say("word_both_sentences"), word, STREAM, "solid")]
    if others is not None:
        drawn.append((say("word_other_tokens"), others, MASKED, "dot"))
    places = list(range(len(states)))
    lines = [
        line(
            *(places, cosines, name, colour),
            dash=dash,
            mode="lines+markers",
            hovertext=list(states),
            hover="%{hovertext}<br>cosine %{y:.4f}",
        )
        for name, cosines, colour, dash in drawn
    ]
    lowest = min(0.0, *(float(cosines.min()) for _, cosines, _, _ in drawn))
    ticks = {"tickvals": places, "ticktext": list(states), "tickangle": -40, "showgrid": False}
    across = titled(say("state_stream"), **ticks)
    return chart(lines, across, titled("cosine similarity", range=[1.1 * lowest, 1.06]), height=430)


def gradient_by_depth(with_shortcuts: Sequence[float], without: Sequence[float]) -> go.Figure:
    """The gradient at each state of a deep stack, in powers of ten; entry 0 is the input of the stack."""
    lines = [
        line(
            *(list(range(len(sizes))), list(sizes), name, colour),
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
    up = titled(say("size_gradient"), type="log", exponentformat="power", nticks=8)
    return chart(lines, titled(say("blocks_passed_input")), up, height=420)


def position_curves(
    table: Values, columns: Sequence[int], *, column_name: str, value_name: str
) -> go.Figure:
    """One curve for each of the chosen columns.

    Args:
        table: (position, column).
        column_name, value_name: what a column and its numbers are called.
    """
    lines = [
        line(
            list(range(len(table))),
            table[:, column],
            f"{column_name} {column}",
            CURVES[number % len(CURVES)],
            dash=_DASHES[number % len(_DASHES)],
            mode="lines+markers" if len(table) <= _MARKED else "lines",
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
    values: Values,
    *,
    chosen: int,
    first: int = 0,
    stairs: bool = False,
    mark: int | None = None,
) -> go.Figure:
    """One curve a head, the chosen one strong.

    Args:
        distances: of the values: the key's position minus the query's.
        values: (head, distance), added to the scores.
        chosen: the number of the strong head.
        first: the first head's number.
        stairs: as steps, each as wide as its distance.
        mark: a distance that is marked; None: none is.
    """
    lines = [
        line(
            distances,
            curve,
            f"head {first + head}",
            CURVES[head % len(CURVES)],
            dash=_DASHES[head // len(CURVES) % len(_DASHES)],
            width=4 if first + head == chosen else 1.5,
            hover=f"head {first + head}, distance %{{x}}<br>bias %{{y:.4f}}",
        ).update(line_shape="hvh" if stairs else "linear")
        for head, curve in enumerate(values)
    ]
    across = titled(say("distance_position_key"))
    figure = chart(lines, across, titled(say("added_score")), height=430, showlegend=True)
    return figure if mark is None else figure.add_vline(mark, line=DOTTED)


def before_and_after(
    tokens: Sequence[str],
    before: Values,
    after: Values,
    *,
    unit: str,
    colour: str,
    first: int = 0,
    top: float | None = None,
    decimals: int = 4,
) -> go.Figure:
    """One number for each token, before and after a change: two marks joined by a line, red up, blue down.

    Args:
        tokens: all tokens of the text.
        before, after: (token,) of the tokens from `first` on.
        unit: what the numbers are.
        colour: of the marks after the change.
        top: end of the axis; None: what the values need.
        decimals: of the numbers on hovering.

    Raises ValueError if values and tokens do not fit.
    """
    places = np.arange(first, first + len(before))
    if before.shape != after.shape or first + len(before) > len(tokens):
        raise ValueError(f"{len(before)} and {len(after)} values for {len(tokens)} tokens.")
    traces = []
    for name, hue, moved in (("more", MORE, after > before), ("less", LESS, after < before)):
        gap = np.full(moved.sum(), None)
        ends = [(places, places, gap), (before, after, gap)]
        x, y = (
            np.stack([one[moved], other[moved], empty], 1).ravel() for one, other, empty in ends
        )
        traces.append(marks(x, y, name=name, mode="lines", line={"color": hue, "width": 3}))
    for name, values, shade, symbol in (
        ("unchanged", before, MASKED, "circle-open"),
        ("changed", after, colour, "circle"),
    ):
        look = {"color": shade, "size": 9, "symbol": symbol, "line": {"width": 2}}
        hover = f"{name} %{{customdata}}"
        drawn = values.astype(np.float32)
        points = marks(places, drawn, name=name, marker=look, hover=hover, showlegend=True)
        traces.append(points.update(customdata=[fixed(float(one), decimals) for one in values]))
    limit = top or 1.08 * float(max(before.max(initial=0), after.max(initial=0))) or 1.0
    up = titled(unit, range=[-0.03 * limit, limit], nticks=6)
    across = Axis("token", tokens).across(tickangle=SLANTED)
    return chart(traces, across, up, height=360)


_LOOKS = ((WEIGHT, "solid"), (WEIGHT, "dash"), (FEED_FORWARD, "solid"), (FEED_FORWARD, "dot"))


@dataclass(frozen=True)
class Curve:
    """Values at some training steps."""

    steps: Sequence[int]
    values: Sequence[float]


def training_curves(
    losses: Mapping[str, Curve], scores: Mapping[str, Curve], *, unit: str = "nats per token"
) -> go.Figure:
    """Losses above, scores (0 to 1) below, against the same steps. unit: of the losses."""
    looks = [(PROBABILITY, dash) for _, dash in _LOOKS]
    traces = [
        line(
            *(curve.steps, curve.values, name, colour),
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
    above = titled(", ".join(filter(None, ("loss", unit))), rangemode="tozero", domain=[0.54, 1])
    below = titled("score", range=[-0.03, 1.05], domain=[0, 0.46])
    return chart(traces, titled("training step", anchor="y2"), above, yaxis2=below, height=430)


FORMED = 5  # heads that have a colour beside the chosen one


def heads_forming(
    steps: Sequence[int], values: Values, *, heads: Sequence[str], chosen: int, unit: str
) -> go.Figure:
    """One number of every head against the training step. The chosen head is strong, those that reach most
    have colours, the others are grey.

    Args:
        values: (step, head).
        heads: their names.
        chosen: the column of one of them.
        unit: what the numbers are.
    """
    order = [int(head) for head in np.argsort(-values.max(0), kind="stable") if head != chosen]
    looks = dict(zip(order[:FORMED], CURVES[1:], strict=False)) | {chosen: CURVES[0]}
    lines = [
        line(
            *(steps, values[:, head], heads[head], looks.get(head, rgba(MASKED, 0.35))),
            width=4 if head == chosen else 2 if head in looks else 1,
            showlegend=head in looks,
            legendrank=0 if head == chosen else order.index(head) + 1,
            hover=f"{heads[head]}, step %{{x}}<br>%{{y:.4f}}",
        )
        for head in [*reversed(order), chosen]
    ]
    return chart(
        lines,
        titled("training step"),
        titled(unit, rangemode="tozero"),
        height=340,
        showlegend=True,
    )


@dataclass(frozen=True)
class Seeds:
    """The same measure of several runs that differ in their seed alone."""

    name: str
    steps: Sequence[int]
    values: Values  # (seed, step); NaN where a run had lost its numbers
    colour: str
    dash: str = "solid"


def first_drawn(drawn: Sequence[Seeds]) -> int:
    """Which of the measured steps a figure begins with, if it is to be hardly higher than its last two
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
        traces += [
            marks(
                [*runs.steps, *reversed(runs.steps)],
                [*low.tolist(), *reversed(high.tolist())],
                mode="lines",
                fill="toself",
                fillcolor=rgba(runs.colour, 0.22),
                line={"width": 0},
            ),
            line(
                *(runs.steps, mean.tolist(), runs.name, runs.colour),
                dash=runs.dash,
                customdata=np.stack([low, high], 1).tolist(),
                hover=f"{runs.name}, step %{{x}}<br>mean %{{y:.4f}}, "
                "seeds %{customdata[0]:.4f} to %{customdata[1]:.4f}",
            ),
        ]
    ends = "; ".join(f"{runs.name}: {runs.values[:, -1].mean():.3f}" for runs in drawn)
    return chart(
        traces,
        titled("training step"),
        titled(measure),
        height=380,
        meta=say("curves_training_mean", ends=ends),
    )


LINEAR = MASKED  # of what grows with n


@dataclass(frozen=True)
class MeasuredCurve:
    """Measured values at some points."""

    name: str
    values: Sequence[float]
    colour: str


def curves(
    points: Sequence[float],
    drawn: Sequence[MeasuredCurve],
    *,
    axis: str,
    unit: str,
    logarithmic: bool = False,
    linear: bool = False,
) -> go.Figure:
    """One line a curve over the points, on a logarithmic axis, or a linear one.

    Args:
        points: where the values were measured.
        drawn: the curves.
        axis, unit: titles of the points and of the values.
        logarithmic: whether the values' axis is, too.
    """
    traces = []
    for curve in drawn:
        hover = f"{curve.name}<br>%{{x:.4g}}: %{{y:.4g}}"
        known = (points, curve.values, curve.name, curve.colour)
        traces.append(line(*known, hover=hover, mode="lines+markers", width=3))
    # A tick for each point if there are few, else ticks at 1 and 3 times each power of ten.
    ticks = list(points) if len(points) <= 10 else [0.1, 0.3, 1, 3, 10, 30]
    scale: dict[str, object] = (
        {"type": "log", "dtick": 1} if logarithmic else {"rangemode": "tozero"}
    )
    across = titled(axis, **({} if linear else {"type": "log", "tickvals": ticks}))
    return chart(traces, across, titled(unit, **scale), height=360)


@dataclass(frozen=True)
class GrowthLine:
    """A cost as a function of the length n: quadratic·n² + linear·n + constant."""

    name: str
    colour: str
    quadratic: float = 0.0
    linear: float = 0.0
    constant: float = 0.0

    def at(self, lengths: ArrayLike) -> Values:
        n = np.asarray(lengths, dtype=np.float64)
        values: Values = self.quadratic * n**2 + self.linear * n + self.constant
        return values


def growth_lines(
    drawn: Sequence[GrowthLine], *, length: int, unit: str, crossing: float | None = None
) -> go.Figure:
    """Both axes are logarithmic, so a square is a steeper line, and what does not grow a level one.

    Args:
        length: of the text, marked by a dotted line.
        unit: what the numbers are.
        crossing: the length at which the first two are equal, marked by a cross; None: they never are.
    """
    far = max(4 * length, 4 * (crossing or 1), 64)
    lengths = np.geomspace(1, far, 60)
    traces = [
        line(
            *(lengths, one.at(lengths), one.name, one.colour),
            width=3,
            hover=f"{one.name}<br>length %{{x:,.0f}}: %{{y:.3s}}",
        )
        for one in drawn
    ]
    if crossing:
        traces.append(
            marks(
                [crossing],
                drawn[0].at([crossing]).tolist(),
                name=f"equal at {crossing:,.1f} tokens",
                marker={"color": WEIGHT, "size": 12, "symbol": "x"},
                hover="equal at %{x:,.1f} tokens",
                showlegend=True,
            )
        )
    figure = _logarithmic(traces, unit, range=[0, math.log10(far)]).add_vline(length, line=DOTTED)
    at = math.log10(length)  # a note on a logarithmic axis is placed by its exponent
    return figure.add_annotation(note(f"n = {length:,}", at, 0.02, yref="paper"))


@dataclass(frozen=True)
class Timed:
    """Measured seconds at some lengths."""

    name: str
    lengths: Sequence[int]
    seconds: Sequence[float]
    colour: str


def time_lines(timed: Sequence[Timed], expected: Timed) -> go.Figure:
    """Measured milliseconds, and as a dashed line what the number of operations predicts."""
    by_operations = "%{x:,} tokens: %{y:.3f} ms by the operations"
    drawn = [(expected, by_operations, "lines", "dash")]
    for row in timed:
        hover = f"{row.name}<br>%{{x:,}} tokens: %{{y:.3f}} ms"
        drawn.append((row, hover, "lines+markers", "solid"))
    traces = [
        line(
            row.lengths,
            [1_000 * seconds for seconds in row.seconds],
            row.name,
            row.colour,
            hover=hover,
            mode=mode,
            dash=dash,
            width=2,
        )
        for row, hover, mode, dash in drawn
    ]
    return _logarithmic(traces, say("milliseconds_pass"), tickvals=list(expected.lengths))


def _logarithmic(traces: Sequence[go.Scatter], unit: str, **lengths: object) -> go.Figure:
    drawn = np.concatenate([np.asarray(trace.y, dtype=np.float64) for trace in traces])
    decades = np.ptp(np.log10(drawn[drawn > 0])) if (drawn > 0).any() else 0.0
    up = titled(unit, type="log", exponentformat="SI", dtick=1 if decades <= 5 else 3)
    across = titled("length in tokens", type="log", tickformat=",", dtick=1, **lengths)
    return chart(traces, across, up, height=360)


def points_on_the_curve(curve: "ActivationLaw", points: Mapping[str, float]) -> go.Figure:
    """The curve beside the line that changes nothing, and on it some named values."""
    x = list(points.values())
    ends = np.linspace(min(-4.0, *x) - 0.5, max(4.0, *x) + 0.5, 401)
    same = line(ends, ends, "unchanged", MASKED, dash="dot", width=1.5, hover="%{x:.2f}")
    y = curve.value(np.array(x))
    named = marks(
        x,
        y,
        mode="markers+text",
        marker={"color": STREAM, "size": 9},
        text=[plotly_words(name) for name in points],
        textposition=["top left" if value > 0 else "top center" for value in x],
        hover="%{text}<br>x = %{x:.4f}: %{y:.4f}",
    )
    name = curve.title.partition(",")[0]  # short: on a phone the legend would lie on the curve
    drawn = [same, _curve(ends, name, curve.value, FEED_FORWARD)]
    across = titled("before the activation", zeroline=True)
    after = titled(
        "after it",
        zeroline=True,
        range=[min(0.0, float(y.min())) - 1, max(0.0, 1.3 * float(y.max())) + 1],
    )
    return chart([*drawn, named], across, after, height=250)


def curve_over_values(curve: "ActivationLaw", met: "Histogram") -> go.Figure:
    """The curve and its slope as lines, in front of a histogram of the values that reached it in a layer."""
    points = np.linspace(met.edges[0], met.edges[-1], 401)
    bars = go.Bar(
        x=(met.edges[:-1] + met.edges[1:]) / 2,
        y=100 * met.shares,
        width=np.diff(met.edges),
        name=say("values_run"),
        marker={"color": rgba(MASKED, 0.45), "line": {"width": 0}},
        yaxis="y2",
        hovertemplate="around %{x:.2f}: %{y:.2f} % of the values<extra></extra>",
    )
    lines = [
        _curve(points, curve.title, curve.value, STREAM),
        _curve(points, "its slope", curve.slope, OUTPUT, "dot"),
    ]
    low, high = (signed(f"{end:.2f}") for end in met.reach)
    outside = (
        f"{met.outside:,} of {met.total:,} values lie outside;<br>all run from {low} to {high}"
    )
    shares = titled(say("share_values"), side="right", showgrid=False, tickmode="auto")
    return chart(
        [bars, *lines],
        titled(f"before the activation<br>{outside}"),
        titled("after it; slope", overlaying="y2", tickmode="auto"),
        yaxis2=shares | {"rangemode": "tozero"},
        height=430,
        bargap=0,
    )


def _curve(
    points: NDArray[np.float64], name: str, function: "Function", colour: str, dash: str = "solid"
) -> go.Scatter:
    hover = f"{name}<br>x = %{{x:.2f}}: %{{y:.4f}}"
    return line(points, function(points), name, colour, dash=dash, hover=hover)
