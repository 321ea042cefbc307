"""Lines between two sentences: how much each word of one attends to the words of the other."""

import textwrap
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.figures.chart import BARE, MONOSPACED, chart, marks
from viz.notation.labels import plotly_label, tick_positions
from viz.notation.theme import KEY, QUERY, REFERENCE, WEIGHT, rgba
from viz.notation.words import sentences_of

say = sentences_of("figures.alignment")

LEAST = 0.02  # smaller weights are not drawn
STEP = 0.05  # weights are rounded to multiples of this
WIDEST, REFERENCE_WIDTH = 11.0, 22.0  # pixels of a line of weight 1, and of a reference band
LABEL = 16  # characters
NAME = 12  # characters of a line above the words: both names stand side by side on a phone
HOVERED = 600  # at most so many lines show their weight on hover
_PALE = 0.4  # opacity of the lines of words that are not chosen
_ROW, _HIGHEST, _ALL = (
    38,
    72,
    400,
)  # pixels of a row: at least, at most; of all rows, where they are few
_SHORT = 8  # letters of words that are written larger


def alignment(
    weights: NDArray[np.floating],
    *,
    source: Sequence[str],
    target: Sequence[str],
    reference: Sequence[Sequence[int]] | None = None,
    chosen: int | None = None,
    names: tuple[str, str] = ("source", "target"),
    rows: int = 0,
) -> go.Figure:
    """The source stands on the left, the target on the right, both from the top down.

    Args:
        weights: (target word, source word) as lines, as wide as the weight, in steps of 0.05. Weights under
            0.02 are not drawn.
        source, target: the words.
        reference: for each target word the source words that it says, drawn as pale bands under the lines.
        chosen: one target word whose lines stand out.
        names: of the two sentences.
        rows: room for at least so many words.

    Raises ValueError if weights and words do not fit.
    """
    if weights.shape != (len(target), len(source)):
        raise ValueError(
            f"{weights.shape} weights for {len(target)} target and {len(source)} source words."
        )
    lines = np.argwhere(weights >= LEAST)  # (target, source) each
    is_clear = np.ones(len(lines), bool) if chosen is None else lines[:, 0] == chosen
    traces, entries = [], [("line width = weight", WEIGHT, WIDEST / 2)]
    if reference is not None:
        bands = [
            (place, said)
            for place, links in enumerate(reference)
            for said in links
            if chosen is None or place == chosen
        ]
        traces.append(_segments(bands, rgba(REFERENCE, 0.4), REFERENCE_WIDTH))
        entries.append((say("reference_grammar"), rgba(REFERENCE, 0.5), REFERENCE_WIDTH))
    for drawn, strength in ((lines[~is_clear], _PALE), (lines[is_clear], 1.0)):
        # One trace for each width: Plotly draws all lines of a trace alike.
        steps = np.maximum(np.round(weights[*drawn.T] / STEP).astype(int), 1)
        for step in np.unique(steps):
            colour = rgba(WEIGHT, strength * (0.35 + 0.6 * step * STEP))
            traces.append(_segments(drawn[steps == step].tolist(), colour, WIDEST * step * STEP))
    for name, colour, width in entries:
        look = {"color": colour, "width": width}
        traces.append(go.Scatter(x=[None], y=[None], mode="lines", line=look, name=name))
    traces += [
        _words(source, 0.0, "middle left", KEY),
        _words(target, 1.0, "middle right", QUERY, chosen),
        _hovered(lines, weights, source, target),
    ]
    longest = max(len(source), len(target), rows, 1)
    titles = [f"<b>{'<br>'.join(textwrap.wrap(name, NAME))}</b>" for name in names]
    ticks = {"tickvals": [0, 1], "ticktext": titles}
    across = BARE | ticks | {"range": [-0.55, 1.55], "side": "top", "fixedrange": True}
    most = weights.argmax(axis=1) if weights.size else []
    pairs = (
        f"{plotly_label(target[at])} attends to {plotly_label(source[of])} ({weights[at, of]:.2f})"
        for at, of in enumerate(most)
    )
    return chart(
        traces,
        across,
        {"range": [longest - 0.4, -0.6], "visible": False, "fixedrange": True},
        height=min(100 + round(min(max(_ALL / longest, _ROW), _HIGHEST) * longest), 900),
        legend={"orientation": "h", "y": -0.02, "yanchor": "top", "x": 0.5, "xanchor": "center"},
        meta=say("lines_wide_weight", first_names=names[0], names=names[1], pairs="; ".join(pairs)),
    )


def _segments(lines: Sequence[tuple[int, int]], colour: str, width: float) -> go.Scatter:
    """Lines (target, source) of one look."""
    across: list[float | None] = [0.03, 0.97, None] * len(lines)
    down = [place for target, source in lines for place in (source, target, None)]
    return marks(across, down, mode="lines", line={"color": colour, "width": width})


def _hovered(
    lines: NDArray[np.intp],
    weights: NDArray[np.floating],
    source: Sequence[str],
    target: Sequence[str],
) -> go.Scatter:
    """Points on the lines, nearer to the target word, that show the weight on hover."""
    shown = lines[np.argsort(-weights[*lines.T], kind="stable")[:HOVERED]]
    return marks(
        [0.7] * len(shown),
        shown @ [0.7, 0.3],
        marker={"size": 18, "color": rgba(WEIGHT, 0)},
        hovertext=[
            f"{plotly_label(target[one])} ← {plotly_label(source[other])}: weight {weights[one, other]:.4f}"
            for one, other in shown.tolist()
        ],
        hover="%{hovertext}",
    )


def _words(
    words: Sequence[str], across: float, where: str, colour: str, chosen: int | None = None
) -> go.Scatter:
    shown = tick_positions(len(words), 40)
    apart = "\u00a0"  # between a word and its dot
    size = 18 if max(map(len, words), default=0) <= _SHORT else 15
    texts = [apart + plotly_label(words[place], LABEL) + apart for place in shown]
    return marks(
        [across] * len(shown),
        list(shown),
        mode="markers+text",
        marker={"color": colour, "size": 8},
        text=[
            f"<b>{text}</b>" if place == chosen else text
            for place, text in zip(shown, texts, strict=True)
        ],
        textposition=where,
        textfont=MONOSPACED | {"size": size},
        cliponaxis=False,
    )
