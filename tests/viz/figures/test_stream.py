"""Figures of norms and the feed-forward layers."""

import numpy as np
import plotly.graph_objects as go
import pytest

from model.analysis.stream.feed_forward import histogram
from model.nn.activations import ACTIVATION_LAWS
from viz.figures.bars import contribution_lengths, contribution_rows
from viz.figures.cells import CROSSED, after_dropout
from viz.figures.curves import curve_over_values, gradient_by_depth
from viz.figures.heatmap import Axis
from viz.figures.vectors import MARKED, colour_end, token_rows
from viz.notation.theme import FEED_FORWARD, OUTPUT

HOSTILE = ["<b>x</b>", "$y$", "", "a", "a"]


def only_heatmap(figure: go.Figure) -> go.Heatmap:
    (found,) = [trace for trace in figure.data if trace.type == "heatmap"]
    return found


def columns(count: int) -> Axis:
    return Axis("dimension", [str(column) for column in range(count)], tokens=False)


def test_equal_tokens_keep_their_rows_and_each_cell_can_be_clicked() -> None:
    values = np.arange(20.0).reshape(5, 4)
    figure = token_rows(values, tokens=HOSTILE, columns=columns(4), quantity="stream", chosen=2)
    assert next(figure.select_traces({"type": "heatmap"})).z.shape == (5, 4)
    assert figure.layout.yaxis.ticktext[0] == "&lt;b&gt;x&lt;/b&gt;"
    marks = figure.data[-1]
    assert marks.name == "marks"
    np.testing.assert_array_equal(np.array(marks.y) * 4 + np.array(marks.x), range(20))
    assert [text.split()[-1].split("<br>")[-1] for text in marks.text] == [
        f"{value:.4f}" for value in range(20)
    ]


def test_marks_that_would_touch_are_left_out_and_nothing_else_is() -> None:
    count = MARKED + 1
    figure = token_rows(
        np.ones((count, 3)), tokens=["a"] * count, columns=columns(3), quantity="stream", chosen=1
    )
    assert [trace.type for trace in figure.data] == ["heatmap"]
    assert len(figure.layout.shapes) == 1


def test_a_picture_says_how_many_values_lie_beyond_its_colours() -> None:
    values = np.ones((10, 100))
    values[0, 0] = 50.0
    end = colour_end(values)
    assert end.value == pytest.approx(1)
    assert end.beyond == 1
    figure = token_rows(values, tokens=["t"] * 10, columns=columns(100), quantity="stream", end=end)
    (said,) = figure.layout.annotations
    assert said.text.startswith("1 of 1,000")
    assert next(figure.select_traces({"type": "heatmap"})).zmax == pytest.approx(1)


def test_without_outliers_the_colours_reach_the_largest_value() -> None:
    end = colour_end(np.array([[1.0, -3.0], [2.0, 2.5]]))
    assert end.value == 3
    assert end.beyond == 0
    assert not end.say_beyond(go.Figure()).layout.annotations


def test_values_that_are_all_zero_are_drawn() -> None:
    figure = token_rows(np.zeros((1, 2)), tokens=["a"], columns=columns(2), quantity="output")
    assert next(figure.select_traces({"type": "heatmap"})).zmax > 0


NAMES = ["L0 attention", "L0 feed-forward"]
ADDED = np.array([[1.0, 3.0, 2.0], [4.0, 0.0, 8.0]])
LENGTHS = np.array([[5.0, 5.0, 5.0], [6.0, 7.0, 8.0]])


def named(figure: go.Figure, start: str) -> go.Scatter:
    return next(trace for trace in figure.data if (trace.name or "").startswith(start))


def heat(figure: go.Figure) -> go.Heatmap:
    return [trace for trace in figure.data if trace.type == "heatmap"][-1]


def test_the_bars_behind_the_curve_are_shares_of_all_values() -> None:
    values = np.random.default_rng(0).standard_normal((30, 40)).astype(np.float32)
    met = histogram(values)
    figure = curve_over_values(ACTIVATION_LAWS["gelu"], met)
    assert np.sum(named(figure, "values").y) == pytest.approx(100 * met.shares.sum())
    for name, function in (
        ("GELU", ACTIVATION_LAWS["gelu"].value),
        ("its slope", ACTIVATION_LAWS["gelu"].slope),
    ):
        drawn = named(figure, name)
        np.testing.assert_allclose(drawn.y, function(np.array(drawn.x)))
    assert f"{met.outside:,} of {met.total:,}" in figure.layout.xaxis.title.text


def test_bars_are_the_mean_or_the_tokens_own_beside_the_mean() -> None:
    mean = contribution_lengths(NAMES, ADDED, LENGTHS, token=None)
    np.testing.assert_allclose(named(mean, "added").y, [2, 4])
    np.testing.assert_allclose(named(mean, "the stream").y, [5, 7])
    own = contribution_lengths(NAMES, ADDED, LENGTHS, token=2)
    np.testing.assert_allclose(named(own, "added, this token").y, [2, 8])
    np.testing.assert_allclose(named(own, "added, mean").y, [2, 4])
    np.testing.assert_allclose(named(own, "the stream").y, [5, 8])
    assert list(named(own, "added, this").marker.color) == [OUTPUT, FEED_FORWARD]


def test_lengths_of_every_token_start_at_zero() -> None:
    cells = heat(contribution_rows(NAMES, ADDED, ["<b>", "a", "a"]))
    np.testing.assert_allclose(cells.z, ADDED.T)
    assert (cells.zmin, cells.zmax) == (0, 8)


def test_gradients_are_drawn_on_powers_of_ten() -> None:
    figure = gradient_by_depth([4.0, 2.0, 1.0], [1e-9, 1e-4, 1.0])
    assert list(named(figure, "with ").y) == [4, 2, 1]
    assert list(named(figure, "without").y) == [1e-9, 1e-4, 1]
    assert figure.layout.yaxis.type == "log"


def test_each_value_set_to_zero_carries_a_cross_and_a_closed_cell_none() -> None:
    values = np.array([[1.2, 0.0], [0.0, 0.5]])
    kept, blocked = values > 0, np.array([[False, True], [False, False]])
    axis = Axis("key", ["a", "b"])
    figure = after_dropout(
        values, kept, rows=axis, columns=axis, quantity="weight", blocked=blocked
    )
    crosses = named(figure, "set to 0")
    assert (list(crosses.x), list(crosses.y)) == ([0], [1])
    title = figure.layout.xaxis.title.text
    assert "×: set to 0" in title
    assert title.split("<br>")[1].startswith("1 of 3 ")
    assert title.endswith(" 1")


def test_values_beyond_the_colours_are_counted_on_the_picture() -> None:
    axis = Axis("neuron", ["a", "b"])
    values, kept = np.array([[9.0, 1.0], [-7.0, 0.0]]), np.ones((2, 2), bool)
    drawn = {"rows": axis, "columns": axis, "quantity": "stream"}
    clipped = after_dropout(values, kept, limit=2.0, **drawn)  # type: ignore[arg-type]
    title = clipped.layout.xaxis.title.text
    assert title.split("<br>")[1].startswith("2 of 4 ")
    assert title.endswith(" 2")
    whole = after_dropout(values, kept, **drawn)  # type: ignore[arg-type]
    assert "beyond" not in whole.layout.xaxis.title.text


def test_in_a_large_picture_zeros_have_no_colour_and_it_says_so() -> None:
    side = int(CROSSED**0.5) + 1
    axis = Axis("key", ["a"] * side)
    kept = np.zeros((side, side), bool)
    figure = after_dropout(np.zeros(kept.shape), kept, rows=axis, columns=axis, quantity="weight")
    assert all(trace.name != "set to 0" for trace in figure.data)
    assert "without colour" in figure.layout.xaxis.title.text
