"""How a token reaches another: by one step of attention, or along the states of a recurrent network."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.figures.chart import BARE, Axis, chart, line, marks, titled
from viz.figures.curves import COLOURS
from viz.notation.labels import tick_positions
from viz.notation.theme import MASKED, WEIGHT

ATTENTION, RECURRENT = WEIGHT, COLOURS[1]  # colours of the two networks
_ARC, _CHAIN, _CURVES = (0.76, 0.92), (0.53, 0.66), (0.0, 0.42)  # of the height


def paths_and_gradients(
    tokens: Sequence[str], start: int, stop: int, gradients: Mapping[str, NDArray[np.floating]]
) -> go.Figure:
    """Above, the way from token `start` to token `stop`: one arc of attention, stop − start steps of a chain.
    Below, the gradient of the last output by each token (token,) of both networks, attention first."""
    steps = stop - start
    places = list(range(len(tokens)))
    reached = [start + step for step in range(steps + 1)]
    across = np.linspace(start, stop, 41)
    height = 1 - ((across - (start + stop) / 2) / max(steps / 2, 0.5)) ** 2
    labelled = tick_positions(len(tokens), 24)
    traces = [
        _nodes(places, "y2"),
        line(across, height, "attention", ATTENTION, width=3, yaxis="y2",
             hover="attention: one step", showlegend=False),
        _nodes(places, "y3"),
        line(places, [0] * len(places), "", MASKED, width=1, yaxis="y3", hover="", showlegend=False),
        line(reached, [0] * len(reached), "GRU", RECURRENT, width=4, yaxis="y3", mode="lines+markers",
             marker={"size": 9}, hover="state after token %{x}", showlegend=False),
        marks(labelled, [-0.8] * len(labelled), mode="text", yaxis="y3",
              text=[str(place) for place in labelled]),
    ]  # fmt: skip
    for (name, lengths), colour in zip(gradients.items(), (ATTENTION, RECURRENT), strict=True):
        traces.append(
            line(places, lengths.tolist(), name, colour, mode="lines+markers",
                 hover=f"{name}, token %{{x}}<br>%{{y:.3g}}")
        )  # fmt: skip
    bare = BARE | {"visible": False, "fixedrange": True}
    return chart(
        traces,
        Axis("token", tokens).across(),
        titled("gradient", type="log", domain=list(_CURVES), dtick=1),
        yaxis2=bare | {"domain": list(_ARC), "range": [-0.3, 1.2]},
        yaxis3=bare | {"domain": list(_CHAIN), "range": [-1.6, 0.8]},
        height=430,
        annotations=[
            _title(f"attention: {_steps(1 if steps else 0)} from token to token", _ARC[1] + 0.02),
            _title(f"GRU: {_steps(steps)}, one state after the other", _CHAIN[1] + 0.02),
            _title("gradient of the last output by each token, log scale", _CURVES[1] + 0.02),
        ],
        legend={"orientation": "h", "y": -0.2, "yanchor": "top", "x": 0.0},
        meta=f"Token {start} to token {stop}: one step of attention, {_steps(steps)} of a GRU.",
    )


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count} steps"


def _nodes(places: Sequence[int], axis: str) -> go.Scatter:
    return marks(places, [0] * len(places), marker={"color": MASKED, "size": 6}, yaxis=axis)


def _title(words: str, height: float) -> dict[str, object]:
    return {
        "text": words, "x": 0, "y": height, "xref": "paper", "yref": "paper", "xanchor": "left",
        "yanchor": "bottom", "showarrow": False,
    }  # fmt: skip
