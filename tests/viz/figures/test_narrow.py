"""What a narrow picture leaves out: the widths come from what it has to hold."""

import re

import numpy as np
import plotly.graph_objects as go
import pytest

from viz.figures.alignment import alignment
from viz.figures.chart import chart
from viz.figures.heatmap import Axis, heatmap
from viz.figures.room import narrow_rules

NARROWEST = 340  # pixels of a picture on a phone that is 390 pixels wide


def drawn(columns: int, value: float = 0.25) -> go.Figure:
    labels = [f"token{at}" for at in range(columns)]
    values = np.full((3, columns), value)
    return heatmap(values, rows=Axis("a", labels[:3]), columns=Axis("b", labels), quantity="score")


def widths(figure: go.Figure, what: str) -> list[int]:
    """The widths below which something is hidden, in the order of the rules."""
    rules = narrow_rules(figure, ".place")
    found = re.findall(r"max-width:(\d+)px\)\{\.place ([^{]*)\{display:none", rules)
    return [int(width) for width, hidden in found if what in hidden]


def test_the_narrower_a_picture_the_fewer_labels_it_shows() -> None:
    found = widths(drawn(20), "tick")
    assert len(found) > 2
    assert found == sorted(found, reverse=True)
    assert widths(drawn(30), "tick")[0] > found[0]


def test_numbers_need_as_much_more_room_as_they_have_letters() -> None:
    (short,), (long,) = (widths(drawn(8, value), "textpoint") for value in (0.25, 25000.25))
    assert long - short == pytest.approx(8 * 12 * 0.61 * len("25,000.25"[4:]), abs=2)


def test_a_picture_without_numbers_and_labels_needs_no_rule() -> None:
    assert narrow_rules(go.Figure(go.Scatter(y=[1, 2])), ".place") == ""


def test_on_a_phone_both_sentences_have_their_names() -> None:
    names = ("read by the encoder", "written by the decoder")
    figure = alignment(np.eye(2), source=["the", "cat"], target=["le", "chat"], names=names)
    assert max(widths(figure, "tick"), default=0) < NARROWEST


def test_a_wide_picture_has_no_room_for_rows_that_its_legend_has_on_a_phone_alone() -> None:
    lines = [go.Scatter(x=[0, 1], y=[0, 1], name=f"a line of some length, {at}") for at in range(4)]
    rules = narrow_rules(chart(lines, {}, {}, height=300), ".place")
    found = re.findall(r"min-width:(\d+)px\)\{\.place>\*\{margin-top:-(\d+)px", rules)
    spared = [(int(width), int(room)) for width, room in found]
    assert [room for _, room in spared] == [
        19,
        38,
        57,
    ]  # of three, two and one row, where there were four
    assert NARROWEST < spared[0][0] <= spared[1][0] < spared[2][0]
    assert "margin-top" not in narrow_rules(chart(lines[:1], {}, {}, height=300), ".place")
