"""What a model gives each word of a text that was written for it."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from viz.figures.legend import ABOVE
from viz.notation.labels import plotly_label, tick_positions
from viz.notation.numbers import probability
from viz.notation.theme import MASKED, WEIGHT

LABEL = 16  # characters
_LEGIBLE = 0.6  # a bar longer than this carries its words inside
_ROW = 44  # pixels


@dataclass(frozen=True)
class Given:
    """A word, its probability, and the word that the model would have written."""

    word: str
    share: float
    first: str
    first_share: float

    @property
    def agrees(self) -> bool:
        return self.word == self.first


def word_probabilities(words: Sequence[Given], error: float = 0.0) -> go.Figure:
    """One row a word from the top down: its probability, and beneath it the model's first choice
    where that is another word. error: how far rounding may move the logarithm of a probability."""
    rows = list(range(len(words)))
    shares = [word.share for word in words]
    texts = [_number(share, error) for share in shares]
    figure = go.Figure(_bars(rows, shares, texts, "the word that stands there", WEIGHT, error))
    others = [word for word in words if not word.agrees]
    if others:
        figure.add_trace(
            _bars(
                [row for row in rows if not words[row].agrees],
                [word.first_share for word in others],
                [
                    f"{plotly_label(word.first)} {_number(word.first_share, error)}"
                    for word in others
                ],
                "the model's first choice, where it is another word",
                MASKED,
                error,
            )
        )
    ticks = tick_positions(len(words), 40)
    figure.update_yaxes(
        tickvals=ticks,
        ticktext=[plotly_label(words[place].word, LABEL) for place in ticks],
        tickfont={"family": "monospace"},
        range=[len(words) - 0.5, -0.5],
        title={"text": "word"},
        showgrid=False,
        zeroline=False,
    )
    figure.update_xaxes(
        title={"text": "probability, given the words before"}, range=[0, 1], tickvals=[0, 0.5, 1]
    )
    figure.update_layout(
        barmode="group",
        showlegend=True,
        bargap=0.25,
        height=min(110 + _ROW * len(words), 900),
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        legend=ABOVE,
    )
    return figure


def _bars(
    rows: Sequence[int],
    shares: Sequence[float],
    texts: Sequence[str],
    name: str,
    colour: str,
    error: float,
) -> go.Bar:
    return go.Bar(
        y=rows,
        x=shares,
        name=name,
        orientation="h",
        marker={"color": colour},
        text=texts,
        textposition=["inside" if share > _LEGIBLE else "outside" for share in shares],
        insidetextanchor="end",
        textfont={"family": "monospace"},
        hovertext=[f"{name}: {probability(share, error, most=6)}" for share in shares],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _number(share: float, error: float) -> str:
    return probability(share, error) if share >= 0.0001 else "&lt;0.0001"
