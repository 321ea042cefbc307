"""Probabilities of tokens and words as rows of bars."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from viz.figures.chart import MONOSPACED, Axis, bars_across, chart, titled
from viz.notation.labels import plotly_label
from viz.notation.numbers import fixed, probability, settled, signed
from viz.notation.theme import MASKED, SCORE, WEIGHT, colorscale

_LABEL = 18  # characters
_LEFT, _RIGHT = [0.0, 0.35], [0.38, 1.0]  # of the width: logits, probabilities
_LEGIBLE = 0.6  # a longer bar has its words inside
_SHARES = {"range": [0, 1], "tickvals": [0, 0.5, 1]}


@dataclass(frozen=True)
class Bars:
    """The probabilities of the listed tokens, and of all others together, in one distribution."""

    shares: Sequence[float]
    others: float
    error: float = 0.0  # rounding error of their logarithms

    @property
    def all(self) -> list[float]:
        return [*self.shares, self.others]


@dataclass(frozen=True)
class Given:
    """A word and its probability, and the model's most probable word and its probability."""

    word: str
    share: float
    first: str
    first_share: float

    @property
    def agrees(self) -> bool:
        return self.word == self.first


def next_tokens(
    labels: Sequence[str],
    before: Sequence[float],
    after: Sequence[float] | None,
    *,
    decimals: int = 4,
) -> go.Figure:
    """What a model expects next, the most probable on top; `after` None draws the unchanged model alone.
    decimals: of the numbers on hovering; the bars bear three at most."""
    pairs = [("unchanged", before, MASKED if after is not None else WEIGHT)]
    if after is not None:
        pairs.append(("changed", after, WEIGHT))
    bars = [
        bars_across(
            shares,
            colour,
            name=name,
            text=[fixed(share, min(decimals, 3)) for share in shares],
            textposition="outside",
            customdata=[fixed(share, decimals) for share in shares],
            hover=f"{name} %{{customdata}}",
        )
        for name, shares, colour in pairs
    ]
    across = titled("probability", range=[0, 1.12], tickvals=[0, 0.5, 1])
    return _grouped(bars, across, Axis("", labels, longest=_LABEL).down(), 90 + 44 * len(labels))


def word_probabilities(words: Sequence[Given], error: float = 0.0) -> go.Figure:
    """One row a word from the top down: its probability, and beneath it the model's first choice
    where that is another word. error: how far rounding may move the logarithm of a probability."""
    shares = [word.share for word in words]
    texts = [probability(share, error) for share in shares]
    name = "the word in the text"
    own = _shares(shares, texts, name, WEIGHT, error, textfont=MONOSPACED)
    traces = [own]
    others = {row: word for row, word in enumerate(words) if not word.agrees}
    if others:
        shares = [word.first_share for word in others.values()]
        name = "the model's first choice, where it differs"
        texts = [
            f"{plotly_label(word.first)} {probability(word.first_share, error)}"
            for word in others.values()
        ]
        look = {"y": list(others), "textfont": MONOSPACED}
        traces.append(_shares(shares, texts, name, MASKED, error, **look))
    rows = Axis("word", [word.word for word in words], longest=16).down(40)
    across = titled("probability, given the words before", **_SHARES)
    height = min(110 + 44 * len(words), 900)
    return _grouped(traces, across, rows, height, showlegend=True)


def distribution(
    labels: Sequence[str],
    logits: Sequence[float],
    model: Bars,
    drawn: Bars | None = None,
    *,
    chosen: int | None = None,
) -> go.Figure:
    """Left the logits, right the probabilities, the first label on top and "other" at the bottom.

    drawn: the distribution after temperature, top-k and top-p, beside the model's own; a token with
    no share left is marked "cut". chosen: the row of a token that was chosen.
    """
    below = colorscale("score")[0][1]  # the colour of its lower end
    decimals = settled(model.error)
    traces = [
        bars_across(
            logits,
            [SCORE if logit >= 0 else below for logit in logits],
            text=[signed(f"{logit:.{min(decimals, 2)}f}") for logit in logits],
            textposition="auto",
            showlegend=False,
            width=0.7,
            hover=f"logit %{{x:.{decimals}f}}",
        )
    ]
    named = [("the model's own", model, WEIGHT if drawn is None else MASKED)]
    if drawn is not None:
        named.append(("after temperature, top-k and top-p", drawn, WEIGHT))
    for name, bars, colour in named:
        texts = [probability(share, bars.error) if share else "cut" for share in bars.all]
        place = {"xaxis": "x2", "yaxis": "y2"}
        traces.append(_shares(bars.all, texts, name, colour, bars.error, **place))
    ticks = [*(plotly_label(label, _LABEL) for label in labels), "<i>other</i>"]
    if chosen is not None:
        ticks[chosen] = f"<b>→ {ticks[chosen]}</b>"
    rows = Axis("", ticks).down() | {"tickvals": list(range(len(ticks))), "ticktext": ticks}
    return _grouped(
        traces,
        titled("logit", domain=_LEFT, range=_ends(logits)),
        rows,
        110 + (34 if drawn is None else 42) * len(ticks),
        xaxis2=titled("probability", domain=_RIGHT, anchor="y2", **_SHARES),
        yaxis2={**rows, "anchor": "x2", "matches": "y", "showticklabels": False},
    )


def _grouped(
    bars: Sequence[go.Bar],
    x: dict[str, object],
    y: dict[str, object],
    height: int,
    **layout: object,
) -> go.Figure:
    """Bars of the same row one below the other."""
    named = {"showlegend": sum(bar.showlegend is not False for bar in bars) > 1}
    shared = {"barmode": "group", "bargap": 0.25}
    return chart(bars, x, y, height=height, **shared | named | layout)


def _shares(
    shares: Sequence[float],
    texts: Sequence[str],
    name: str,
    colour: str,
    error: float,
    **more: object,
) -> go.Bar:
    """Bars of probabilities. Hovering shows all digits that are certain."""
    return bars_across(
        shares,
        colour,
        name=name,
        text=texts,
        textposition=["inside" if share > _LEGIBLE else "outside" for share in shares],
        insidetextanchor="end",
        insidetextfont={"color": "white"},
        constraintext="none",
        hovertext=[f"{name}: {probability(share, error, most=6)}" for share in shares],
        hover="%{hovertext}",
        **more,
    )


def _ends(logits: Sequence[float]) -> list[float]:
    """The ends of the logits' axis, with room for a number beside a short bar."""
    low, high = min([*logits, 0.0]), max([*logits, 0.0])
    room = 0.25 * ((high - low) or 1.0)
    return [low - (room if low < 0 else 0), high + (room if high > 0 else 0)]
