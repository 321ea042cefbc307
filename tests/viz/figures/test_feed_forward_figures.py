"""The pictures of the feed-forward page: what is drawn is what was given, and is named."""

import numpy as np
import plotly.graph_objects as go
import pytest

from model.analysis.stream.activation_curves import CURVES
from model.analysis.stream.neurons import histogram
from viz.figures.bars import contribution_lengths, contribution_rows
from viz.figures.cells import CROSSED, after_dropout
from viz.figures.curves import (
    ActivationLine,
    activation_curves,
    curve_over_values,
    gradient_by_depth,
)
from viz.figures.heatmap import Axis
from viz.notation.theme import FEED_FORWARD, WEIGHT

NAMES = ["L0 attention", "L0 feed-forward"]
ADDED = np.array([[1.0, 3.0, 2.0], [4.0, 0.0, 8.0]])
STREAM = np.array([[5.0, 5.0, 5.0], [6.0, 7.0, 8.0]])


def named(figure: go.Figure, start: str) -> go.Scatter:
    return next(trace for trace in figure.data if (trace.name or "").startswith(start))


def heat(figure: go.Figure) -> go.Heatmap:
    return [trace for trace in figure.data if trace.type == "heatmap"][-1]


def test_the_lines_are_the_functions_they_are_named_after() -> None:
    curves = [CURVES[name] for name in ("gelu", "gelu_tanh", "relu", "silu")]
    lines = [ActivationLine(curve.title, curve.slope) for curve in curves]
    figure = activation_curves(lines, what="slope")
    assert [trace.name for trace in figure.data] == [curve.title for curve in curves]
    for trace, curve in zip(figure.data, curves, strict=True):
        np.testing.assert_allclose(trace.y, curve.slope(np.array(trace.x)))
    assert figure.layout.yaxis.title.text == "slope"


def test_the_bars_behind_the_curve_are_shares_of_all_values() -> None:
    values = np.random.default_rng(0).standard_normal((30, 40)).astype(np.float32)
    met = histogram(values)
    figure = curve_over_values(CURVES["gelu"], met)
    assert np.sum(named(figure, "values of this run").y) == pytest.approx(100 * met.shares.sum())
    assert f"{met.outside:,} of {met.total:,}" in figure.layout.xaxis.title.text


def test_bars_are_the_mean_or_the_tokens_own_beside_the_mean() -> None:
    mean = contribution_lengths(NAMES, ADDED, STREAM, token=None)
    np.testing.assert_allclose(named(mean, "added").y, [2, 4])
    np.testing.assert_allclose(named(mean, "the stream").y, [5, 7])
    own = contribution_lengths(NAMES, ADDED, STREAM, token=2)
    np.testing.assert_allclose(named(own, "added, this token").y, [2, 8])
    np.testing.assert_allclose(named(own, "added, mean").y, [2, 4])
    np.testing.assert_allclose(named(own, "the stream").y, [5, 8])
    assert list(named(own, "added, this").marker.color) == [WEIGHT, FEED_FORWARD]


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
    assert "the colour scale ends at 1;<br>1 of 3 values lie beyond it" in title


def test_values_beyond_the_colours_are_counted_on_the_picture() -> None:
    axis = Axis("neuron", ["a", "b"])
    values, kept = np.array([[9.0, 1.0], [-7.0, 0.0]]), np.ones((2, 2), bool)
    drawn = {"rows": axis, "columns": axis, "quantity": "stream"}
    clipped = after_dropout(values, kept, limit=2.0, **drawn)  # type: ignore[arg-type]
    assert (
        "the colour scale ends at 2;<br>2 of 4 values lie beyond it"
        in clipped.layout.xaxis.title.text
    )
    whole = after_dropout(values, kept, **drawn)  # type: ignore[arg-type]
    assert "beyond" not in whole.layout.xaxis.title.text


def test_in_a_large_picture_zeros_have_no_colour_and_it_says_so() -> None:
    side = int(CROSSED**0.5) + 1
    axis = Axis("key", ["a"] * side)
    kept = np.zeros((side, side), bool)
    figure = after_dropout(np.zeros(kept.shape), kept, rows=axis, columns=axis, quantity="weight")
    assert all(trace.name != "set to 0" for trace in figure.data)
    assert "without colour: set to 0" in figure.layout.xaxis.title.text
