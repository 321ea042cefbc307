"""Lines between the words of two sentences: what each word of one read in the other."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.notation.labels import plotly_label, tick_positions
from viz.notation.theme import GOLD, KEY, QUERY, WEIGHT, rgba

LEAST = 0.02  # lighter lines are left out
STEP = 0.05  # weights are drawn in so many widths
WIDEST, GOLD_WIDTH = 9.0, 17.0  # pixels of a line of weight 1, and of a gold band
LABEL = 16  # characters
HOVERED = 600  # up to so many lines each says its numbers on hover
_PALE = 0.25  # of the lines of words that are not chosen
_ROW = 38  # pixels


@dataclass(frozen=True, eq=False)
class _Lines:
    """Lines from source words to target words, as pairs of positions, with their weights."""

    target: NDArray[np.intp]
    source: NDArray[np.intp]
    weight: NDArray[np.floating]

    def of(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> "_Lines":
        return _Lines(self.target[chosen], self.source[chosen], self.weight[chosen])


def alignment(
    weights: NDArray[np.floating],
    *,
    source: Sequence[str],
    target: Sequence[str],
    gold: Sequence[Sequence[int]] | None = None,
    chosen: int | None = None,
    names: tuple[str, str] = ("source", "target"),
    rows: int = 0,
) -> go.Figure:
    """weights (target word, source word) as lines, as wide as the weight, in steps of 0.05.

    The source stands on the left, the target on the right, both from the top down. Weights under
    0.02 are not drawn. gold: for each target word the source words that it says, drawn as pale
    bands under the lines. chosen: one target word whose lines stand out. rows: room for at least so
    many words. Raises ValueError if weights and words do not fit.
    """
    if weights.shape != (len(target), len(source)):
        raise ValueError(
            f"{weights.shape} weights for {len(target)} target and {len(source)} source words."
        )
    traces = [] if gold is None else [_gold(gold, chosen)]
    at_target, at_source = np.nonzero(weights >= LEAST)
    lines = _Lines(at_target, at_source, weights[at_target, at_source])
    clear = np.ones(len(at_target), bool) if chosen is None else at_target == chosen
    traces += _drawn(lines.of(~clear), _PALE)
    traces += _drawn(lines.of(clear), 1.0)
    traces += _legend(gold is not None)
    traces += [
        _words(source, 0.0, "middle left", KEY),
        _words(target, 1.0, "middle right", QUERY, chosen),
        _hovered(lines, source, target),
    ]
    said = {"meta": _in_words(weights, source, target, names)}
    return go.Figure(traces, said | _layout(max(len(source), len(target), rows, 1), names))


def _layout(longest: int, names: tuple[str, str]) -> dict[str, object]:
    """Both columns of words from the top down, under their names."""
    across = {
        "range": [-0.55, 1.55],
        "tickvals": [0, 1],
        "ticktext": [f"<b>{name}</b>" for name in names],
        "side": "top",
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
    }
    return {
        "xaxis": across,
        "yaxis": {"range": [longest - 0.4, -0.6], "visible": False, "fixedrange": True},
        "height": min(100 + _ROW * longest, 900),
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "legend": {"orientation": "h", "y": -0.02, "yanchor": "top", "x": 0.5, "xanchor": "center"},
    }


def _in_words(
    weights: NDArray[np.floating],
    source: Sequence[str],
    target: Sequence[str],
    names: tuple[str, str],
) -> str:
    """What is read most for each target word, for those who do not see the lines."""
    most = weights.argmax(axis=1) if weights.size else []
    pairs = (
        f"{plotly_label(target[at])} reads {plotly_label(source[of])} ({weights[at, of]:.2f})"
        for at, of in enumerate(most)
    )
    return f"Lines from {names[0]} to {names[1]}, as wide as the weight. {'; '.join(pairs)}."


def _drawn(lines: _Lines, strength: float) -> list[go.Scatter]:
    """One trace for all lines of about the same weight: as many traces as there are widths."""
    steps = np.maximum(np.round(lines.weight / STEP).astype(int), 1)
    return [
        _segments(
            lines.target[steps == step],
            lines.source[steps == step],
            {
                "color": rgba(WEIGHT, strength * (0.35 + 0.6 * step * STEP)),
                "width": WIDEST * step * STEP,
            },
        )
        for step in sorted(set(steps.tolist()))
    ]


def _gold(gold: Sequence[Sequence[int]], chosen: int | None) -> go.Scatter:
    pairs = [
        (target, source)
        for target, links in enumerate(gold)
        for source in links
        if chosen is None or target == chosen
    ]
    places = np.array(pairs, dtype=int).reshape(-1, 2)
    return _segments(places[:, 0], places[:, 1], {"color": rgba(GOLD, 0.4), "width": GOLD_WIDTH})


def _segments(
    target: NDArray[np.intp], source: NDArray[np.intp], line: dict[str, object]
) -> go.Scatter:
    across: list[float | None] = [0.03, 0.97, None] * len(target)
    down = [
        place
        for left, right in zip(source.tolist(), target.tolist(), strict=True)
        for place in (left, right, None)
    ]
    return go.Scatter(x=across, y=down, mode="lines", line=line, hoverinfo="skip", showlegend=False)


def _legend(gold: bool) -> list[go.Scatter]:
    """What a line and a band mean."""
    entries = [("weight: the wider, the more is read", {"color": WEIGHT, "width": WIDEST / 2})]
    if gold:
        entries.append(
            ("gold: what the grammar says", {"color": rgba(GOLD, 0.5), "width": GOLD_WIDTH})
        )
    return [
        go.Scatter(x=[None], y=[None], mode="lines", line=line, name=name) for name, line in entries
    ]


def _words(
    words: Sequence[str], across: float, where: str, colour: str, chosen: int | None = None
) -> go.Scatter:
    shown = tick_positions(len(words), 40)
    apart = "\u00a0"  # between a word and its dot
    texts = [apart + plotly_label(words[place], LABEL) + apart for place in shown]
    return go.Scatter(
        x=[across] * len(shown),
        y=list(shown),
        mode="markers+text",
        marker={"color": colour, "size": 8},
        text=[
            f"<b>{text}</b>" if place == chosen else text
            for place, text in zip(shown, texts, strict=True)
        ],
        textposition=where,
        textfont={"family": "monospace", "size": 15},
        cliponaxis=False,
        hoverinfo="skip",
        showlegend=False,
    )


def _hovered(lines: _Lines, source: Sequence[str], target: Sequence[str]) -> go.Scatter:
    """Points on the lines, nearer to the target word, that say the weight."""
    heaviest = np.argsort(-lines.weight, kind="stable")[:HOVERED]
    shown = lines.of(heaviest)
    share = 0.7
    return go.Scatter(
        x=[share] * len(heaviest),
        y=shown.source + share * (shown.target - shown.source),
        mode="markers",
        marker={"size": 18, "color": rgba(WEIGHT, 0)},
        hovertext=[
            f"{plotly_label(target[one])} ← {plotly_label(source[other])}: weight {weight:.4f}"
            for one, other, weight in zip(shown.target, shown.source, shown.weight, strict=True)
        ],
        hovertemplate="%{hovertext}<extra></extra>",
        showlegend=False,
    )
