"""Margins are counted where the width of letters is known, and left to Plotly elsewhere."""

import numpy as np
import plotly.graph_objects as go
import pytest

from viz.figures.heatmap import Axis, heatmap
from viz.figures.margins import LETTER, fix_margins


def picture(*tokens: str) -> go.Figure:
    figure = heatmap(
        np.eye(len(tokens)),
        rows=Axis("query", tokens),
        columns=Axis("key", tokens),
        quantity="weight",
    )
    fix_margins(figure)
    return figure


def test_a_longer_label_has_more_room_and_an_escaped_letter_counts_once() -> None:
    short, long = (picture("<", *[token] * 7) for token in ("cat", "tomcat"))
    assert long.layout.margin.l - short.layout.margin.l == pytest.approx(3 * LETTER)
    assert long.layout.margin.t > short.layout.margin.t
    assert picture(*["<"] * 7).layout.margin.l == picture(*["a"] * 7).layout.margin.l
    assert not long.layout.xaxis.automargin
    assert not long.layout.yaxis.automargin


@pytest.mark.parametrize("tokens", [["猫"] * 8, ["the", "cat"]])
def test_letters_of_unknown_width_and_labels_that_may_turn_are_plotlys(tokens: list[str]) -> None:
    figure = picture(*tokens)
    assert figure.layout.margin.l == 8
    assert figure.layout.yaxis.automargin is None
